// SPDX-License-Identifier: Apache-2.0

package change

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
)

// holds tells whether the new config has files below a path.
func (p *planner) holds(name string) bool {
	for other := range p.to.Entries {
		if strings.HasPrefix(other, name+"/") {
			return true
		}
	}
	return false
}

// becomesFolder plans a folder in the place of a file that the new config no longer has, for the files that it has below.
// Where the image has a file of its own there no fresh node could have them, and so neither has this one.
func (p *planner) becomesFolder(name string, before, image State) error {
	if image.Kind != absent {
		return fmt.Errorf("%s: the OS image has a file there, and the config has files below it, as on a folder; have them somewhere else", name)
	}
	if before.Kind == absent || before.Kind == folder {
		p.journal.Forget = append(p.journal.Forget, name)
		return nil
	}
	if err := p.keep(original{Path: name, State: State{Kind: absent}, Dir: true}); err != nil {
		return err
	}
	p.becomes[name] = true
	p.journal.Actions = append(p.journal.Actions, action{name, before, State{Kind: folder, Mode: 0o755}})
	return nil
}

// replacesFolder plans what stands in the place of a folder, once all that configs had in it is gone.
func (p *planner) replacesFolder(name string, before, after State) error {
	if after.Kind == folder {
		return nil
	}
	if err := p.clear(name); err != nil {
		return err
	}
	p.late = append(p.late, action{name, before, after})
	if _, wants := p.to.Entries[name]; !wants {
		p.journal.Forget = append(p.journal.Forget, name)
		return nil
	}
	return p.keep(original{Path: name, State: State{Kind: absent}})
}

// clear plans that nothing is in a folder any more, and refuses where something is in it that no config put there.
func (p *planner) clear(dir string) error {
	names, err := p.node.Names(dir)
	if err != nil {
		return err
	}
	for _, base := range names {
		name := path.Join(dir, base)
		is, err := read(p.node, name)
		if err != nil {
			return err
		}
		_, owned := p.from.Entries[name]
		_, wants := p.to.Entries[name]
		switch {
		case wants:
			return fmt.Errorf("%s: the config has a file there, and %s below it", dir, name)
		case owned:
			image, err := p.base(name, is)
			if err != nil {
				return err
			}
			if image.Kind != absent {
				return fmt.Errorf("%s: the OS image has a file there, and the config has a file in the place of its folder; have it somewhere else", name)
			}
		case is.Kind == folder:
			if err := p.clear(name); err != nil {
				return err
			}
			p.late = append(p.late, action{name, is, State{Kind: absent}})
			p.journal.Forget = append(p.journal.Forget, name)
		default:
			return fmt.Errorf("%s is a folder where the config has a file, and it holds %s, which no config put there; move that away", dir, name)
		}
	}
	return nil
}

// folders notes which folders the update makes for what is in them.
func (p *planner) folders(dir string) error {
	if slices.Contains(p.journal.Dirs, dir) || p.becomes[dir] {
		return nil
	}
	if _, wants := p.to.Entries[dir]; wants {
		return fmt.Errorf("%s: the config has a file there, and others below it", dir)
	}
	info, err := p.node.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
	case err != nil:
		return err
	case info.IsDir():
		return nil
	case info.Mode()&fs.ModeSymlink != 0:
		return p.leadsToFolder(dir)
	default:
		return fmt.Errorf("%s is a file that no config put there, and the config has files below it; remove it", dir)
	}
	if err := p.folders(path.Dir(dir)); err != nil {
		return err
	}
	p.journal.Dirs = append(p.journal.Dirs, dir)
	return p.keep(original{Path: dir, State: State{Kind: absent}, Dir: true})
}

// leadsToFolder refuses a link to nothing: what is written through it would come to stand in a folder that nobody made.
func (p *planner) leadsToFolder(name string) error {
	within, err := p.node.Resolve(name + "/file")
	if err != nil {
		return err
	}
	if is, err := p.node.Lstat(path.Dir("/" + within)); err == nil && is.IsDir() {
		return nil
	}
	return fmt.Errorf("%s is a symbolic link that leads to no folder, and the config has files below it; remove it", name)
}
