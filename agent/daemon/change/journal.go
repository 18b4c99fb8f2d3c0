// SPDX-License-Identifier: Apache-2.0

package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/mcsnap/mcsnap/agent/handoff"
	"github.com/mcsnap/mcsnap/snapshot"
)

// step is where tests kill the process.
var step = func() {}

// finish does what a journal says, and takes it back when that fails. Once the new config is the node's there is no way
// back: what is left to do then is only to be tried again.
func (u *Updater) finish(ctx context.Context, j *journal) (*Result, error) {
	cause := u.forward(ctx, j)
	if cause == nil {
		cause = u.commit()
	}
	if cause == nil {
		return j.result(), u.settle(ctx, j)
	}
	if ctx.Err() != nil {
		return nil, cause // told to stop: the next process goes on
	}
	j.Back, j.Reason = true, strings.Join(strings.Fields(cause.Error()), " ")
	err := writeJSON(u.Node, journalPath, j)
	if err == nil {
		err = u.back(context.WithoutCancel(ctx), j)
	}
	if err != nil {
		return nil, fmt.Errorf("the update from %s to %s failed (%w) and could not be taken back yet: %w", j.From.Name, j.To.Name, cause, err)
	}
	return nil, &FailedError{j.From.Name, j.To.Name, cause}
}

// forward makes the changes. It may be cut at any point and done again.
func (u *Updater) forward(ctx context.Context, j *journal) error {
	kept := blobs{u.Node, blobsDir}
	for _, o := range j.Originals {
		content, err := kept.get(o.State)
		if err != nil {
			return err
		}
		o.State.content = content
		if err := keepOriginal(u.Node, o); err != nil {
			return err
		}
	}
	if err := j.unitsOff(ctx, u.Units); err != nil {
		return err
	}
	for _, action := range j.Actions {
		if err := ctx.Err(); err != nil {
			return err
		}
		content, err := kept.get(action.After)
		if err == nil {
			err = put(u.Node, action.Path, action.After, content)
		}
		if err == nil {
			err = u.ownFolders(j, action)
		}
		if err != nil {
			return err
		}
		step()
	}
	if err := u.Units.Reload(ctx); err != nil {
		return err
	}
	if err := j.unitsOn(ctx, u.Units); err != nil {
		return err
	}
	return u.syncUnits(j)
}

// commit makes the new config the node's.
func (u *Updater) commit() error {
	target, err := u.Node.ReadFile(targetPath, snapshot.MaxSealed)
	if err != nil {
		return err
	}
	if _, err := snapshot.Open(target); err != nil {
		return fmt.Errorf("%s: %w", targetPath, err)
	}
	step()
	return u.Node.WriteFile(currentPath, target, 0o600)
}

// settle tells other daemons what is current, and gives up what was kept for the way back.
func (u *Updater) settle(ctx context.Context, j *journal) error {
	step()
	if err := errors.Join(u.publish(), u.note(ctx)); err != nil {
		return err
	}
	for _, name := range j.Forget {
		if err := forgetOriginal(u.Node, name); err != nil {
			return err
		}
	}
	for _, action := range j.Actions {
		if action.After.Kind == absent {
			if err := u.removeEmptied(path.Dir(action.Path)); err != nil {
				return err
			}
		}
	}
	step()
	if err := sweepOriginals(u.Node); err != nil {
		return err
	}
	return u.clean()
}

// publish writes the node's config where every daemon finds it.
func (u *Updater) publish() error {
	s, err := u.Current()
	if err != nil {
		return err
	}
	exported, err := s.Export("")
	if err != nil {
		return err
	}
	if err := u.Node.MkdirAll(path.Dir(handoff.CurrentPath), 0o755); err != nil {
		return err
	}
	return u.Node.WriteFile(handoff.CurrentPath, exported, 0o600)
}

// back undoes a journal. It may be cut at any point and done again.
func (u *Updater) back(ctx context.Context, j *journal) error {
	origin, err := u.Node.ReadFile(originPath, snapshot.MaxSealed)
	if err != nil {
		return err
	}
	if err := u.Node.WriteFile(currentPath, origin, 0o600); err != nil {
		return err
	}
	kept := blobs{u.Node, blobsDir}
	for _, action := range slices.Backward(j.Actions) {
		content, err := kept.get(action.Before)
		if err == nil && action.After.Kind == folder {
			err = u.removeMade(j, action.Path)
		}
		if err == nil {
			err = put(u.Node, action.Path, action.Before, content)
		}
		if err != nil {
			return err
		}
		step()
	}
	if err := u.removeMade(j, ""); err != nil {
		return err
	}
	if err := u.Units.Reload(ctx); err != nil {
		return err
	}
	if err := j.unitsBack(ctx, u.Units); err != nil {
		return err
	}
	if err := u.syncUnits(j); err != nil {
		return err
	}
	for _, o := range j.Originals {
		if err := forgetOriginal(u.Node, o.Path); err != nil {
			return err
		}
	}
	for _, o := range j.Replaced {
		if err := writeJSON(u.Node, originalPath(o.Path), o); err != nil { // its content has not been swept
			return err
		}
	}
	if err := sweepOriginals(u.Node); err != nil {
		return err
	}
	return u.clean()
}

// resume goes on with an update that was cut; the result is nil when there is none.
func (u *Updater) resume(ctx context.Context) (*Result, error) {
	text, err := u.Node.ReadFile(journalPath, maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, u.clean()
	}
	if err != nil {
		return nil, err
	}
	j := &journal{}
	if err := json.Unmarshal(text, j); err != nil {
		return nil, fmt.Errorf("%s: %w; the disk lost it: provision the node again", journalPath, err)
	}
	for _, action := range j.Actions {
		if err := u.Node.Sweep(path.Dir(action.Path)); err != nil {
			return nil, err
		}
	}
	u.Log.Info("going on with an update that was cut", "from", j.From.Name, "to", j.To.Name, "back", j.Back)
	failed := &FailedError{j.From.Name, j.To.Name, errors.New(j.Reason)}
	if j.Back {
		err = u.back(ctx, j)
	} else {
		result, finishing := u.finish(ctx, j)
		if finishing == nil {
			result.Resumed = true
			return result, nil
		}
		if gone, is := errors.AsType[*FailedError](finishing); is {
			failed = gone
		} else {
			err = finishing
		}
	}
	if err != nil {
		return nil, err
	}
	return &Result{From: j.From.Name, To: j.To.Name, Resumed: true, Back: true, Reason: failed.Error()}, nil
}

func (j *journal) result() *Result {
	result := &Result{From: j.From.Name, To: j.To.Name}
	for _, action := range j.Actions {
		result.Changed = append(result.Changed, action.Path)
	}
	for _, unit := range j.Units {
		result.Units = append(result.Units, unit.Name)
	}
	return result
}
