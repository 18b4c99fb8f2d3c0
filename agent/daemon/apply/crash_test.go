// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/agent/daemon/apply"
	"github.com/mcsnap/mcsnap/snapshot/durable/durabletest"
)

// Two small configs with one of each kind of step between them.
const (
	one = `{` + head + `,
		"storage":{"files":[{"path":"/etc/changes","overwrite":true,"mode":420,"contents":{"source":"data:,one"}},{"path":"/etc/goes","mode":384,"contents":{"source":"data:,goes"}}]},
		"systemd":{"units":[{"name":"a.service","enabled":true,"contents":` + unit + `,"dropins":[{"name":"x.conf","contents":"[Unit]\n"}]}]}}`
	two = `{` + head + `,
		"storage":{"files":[{"path":"/etc/changes","overwrite":true,"mode":384,"user":{"id":1000},"contents":{"source":"data:,two"}},{"path":"/etc/new/comes","mode":420,"contents":{"source":"data:,comes"}},
			{"path":"/etc/theirs","overwrite":true,"contents":{"source":"data:,ours"}}]},
		"systemd":{"units":[{"name":"a.service","mask":true}]},
		"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 AAAA"]}]}}`
)

// small is a node that was born with config one, on a root of few files.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"etc/passwd": distribution["etc/passwd"], "etc/group": distribution["etc/group"],
		"etc/changes": "one", "etc/goes": "goes", "etc/theirs": "theirs",
		"etc/systemd/system/a.service": "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", "etc/systemd/system/a.service.d/x.conf": "[Unit]\n",
		"etc/systemd/system-preset/20-ignition.preset": "enable a.service\n",
		"etc/systemd/system/multi-user.target.wants/.": "", "home/core/.": "",
	} {
		at := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/.") {
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, at, text)
	}
	for _, err := range []error{
		os.Chmod(filepath.Join(dir, "etc/goes"), 0o600),
		os.Chown(filepath.Join(dir, "home/core"), 1000, 1000),
		os.Symlink("/etc/systemd/system/a.service", filepath.Join(dir, "etc/systemd/system/multi-user.target.wants/a.service")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// updated runs the update on a disk and tells how it ended, and on which error.
func updated(t *testing.T, dir string, disk *durabletest.Disk) error {
	n, err := open(t, dir, disk, sealed(t, "rendered-worker-1", one))
	if err != nil {
		return err
	}
	defer n.close()
	return n.update(sealed(t, "rendered-worker-2", two))
}

func adopted(t *testing.T) string {
	t.Helper()
	dir := small(t)
	n, err := open(t, dir, &durabletest.Disk{}, sealed(t, "rendered-worker-1", one))
	if err != nil {
		t.Fatal(err)
	}
	n.adopt()
	n.close()
	return dir
}

// ends gives the two trees that an update may leave, and the steps that its disk sees.
func ends(t *testing.T) (before, after map[string]string, steps int) {
	t.Helper()
	dir := adopted(t)
	before = tree(t, dir, "/var")
	disk := &durabletest.Disk{}
	if err := updated(t, dir, disk); err != nil {
		t.Fatal(err)
	}
	after = tree(t, dir, "/var")
	if cmp.Equal(before, after) {
		t.Fatal("the update changed nothing")
	}
	return before, after, len(disk.Steps())
}

// Field cases 98 and 100: the power is cut after each single step of the disk, with all that a disk may make of it. The
// next start goes on; at its end the node is wholly the new config, the record says so, and nothing is left over.
func TestPowerCuts(t *testing.T) {
	_, after, steps := ends(t)
	resumed := 0
	for at := 1; at <= steps; at += stride {
		loss := durabletest.Losses[at/stride%len(durabletest.Losses)]
		dir := adopted(t)
		disk := &durabletest.Disk{FailAt: at, Dead: true}
		// The last steps remove litter, of which nobody hears.
		if err := updated(t, dir, disk); err == nil && !strings.HasPrefix(disk.Steps()[at-1], "remove ") && !strings.HasPrefix(disk.Steps()[at-1], "sync ") {
			t.Fatalf("step %d of %d (%s) did not fail", at, steps, disk.Steps()[at-1])
		}
		disk.PowerCut(loss)

		n, err := open(t, dir, &durabletest.Disk{}, sealed(t, "rendered-worker-1", one))
		if err != nil {
			t.Fatalf("cut at step %d (%s), loss %d: %v", at, disk.Steps()[at-1], loss, err)
		}
		was, err := n.store.Resume(context.Background())
		if was {
			resumed++
		}
		if err == nil {
			err = n.update(sealed(t, "rendered-worker-2", two)) // what the daemon does next, even when nothing is left to do
		}
		if err != nil {
			t.Errorf("cut at step %d (%s), loss %d: %v", at, disk.Steps()[at-1], loss, err)
		}
		if diff := cmp.Diff(after, tree(t, dir, "/var")); diff != "" {
			t.Errorf("cut at step %d (%s), loss %d (-want +got):\n%s", at, disk.Steps()[at-1], loss, diff)
		}
		if record, err := n.store.Record(); err != nil || record.Current.Name != "rendered-worker-2" {
			t.Errorf("cut at step %d: the record says %+v, %v", at, record, err)
		}
		if again, err := n.store.Resume(context.Background()); again || err != nil {
			t.Errorf("cut at step %d: something is still under way: %v", at, err)
		}
		n.close()
	}
	t.Logf("bench: %d power cuts, %d of them with a plan under way", steps/stride, resumed)
}

// One step fails (the disk is full, a sector is bad) and the machine goes on: the update is done, or nothing of it is.
func TestFailures(t *testing.T) {
	before, after, steps := ends(t)
	rolledBack := 0
	for at := 1; at <= steps; at += stride {
		dir := adopted(t)
		disk := &durabletest.Disk{FailAt: at, Err: syscall.ENOSPC, Done: at/stride%2 == 0}
		err := updated(t, dir, disk)
		want := before
		if err == nil {
			want = after
		}
		back, is := errors.AsType[*apply.RolledBackError](err)
		if is {
			rolledBack++
			if back.Problem == "" || !strings.Contains(err.Error(), "rendered-worker-1 as before") {
				t.Errorf("step %d: %v", at, err)
			}
		}
		got := tree(t, dir, "/var")
		if err != nil && !is && cmp.Equal(got, after) {
			want = after // everything was done but for the record or the journal's end, which the next start does
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("step %d (%s) failed, err %v (-want +got):\n%s", at, disk.Steps()[at-1], err, diff)
		}
		n, err := open(t, dir, &durabletest.Disk{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.store.Resume(context.Background()); err != nil {
			if _, is := errors.AsType[*apply.RolledBackError](err); !is {
				t.Errorf("step %d: the next start: %v", at, err)
			}
		}
		if err := n.update(sealed(t, "rendered-worker-2", two)); err != nil {
			t.Errorf("step %d: the next try: %v", at, err)
		}
		if diff := cmp.Diff(after, tree(t, dir, "/var")); diff != "" {
			t.Errorf("step %d: after the next try (-want +got):\n%s", at, diff)
		}
		n.close()
	}
	t.Logf("bench: %d failing steps, %d plans taken back", steps/stride, rolledBack)
}

// A way back that is cut goes on backwards.
func TestPowerCutsOnTheWayBack(t *testing.T) {
	before, _, _ := ends(t)
	for at := 1; ; at += stride {
		dir := adopted(t)
		// Something that cannot be replaced stands where the last step goes, since the plan was made.
		n, err := open(t, dir, &durabletest.Disk{}, sealed(t, "rendered-worker-1", one))
		if err != nil {
			t.Fatal(err)
		}
		p, record, err := n.plan(sealed(t, "rendered-worker-2", two))
		if err != nil {
			t.Fatal(err)
		}
		n.close()
		last := p.Steps[len(p.Steps)-1].Path
		p.Steps[len(p.Steps)-1].After.SHA256 = strings.Repeat("0", 64) // contents that are lost

		disk := &durabletest.Disk{FailAt: at, Dead: true}
		n, err = open(t, dir, disk, nil)
		ended := false
		if err == nil {
			next := apply.Record{Current: apply.RefOf(sealed(t, "rendered-worker-2", two)), Originals: p.Originals}
			err = n.store.Apply(context.Background(), p, record.Current, sealed(t, "rendered-worker-2", two), next)
			_, ended = errors.AsType[*apply.RolledBackError](err)
			ended = ended && len(disk.Steps()) < at
			n.close()
		}
		disk.PowerCut(durabletest.Losses[at/stride%len(durabletest.Losses)])
		n, err = open(t, dir, &durabletest.Disk{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = n.store.Resume(context.Background())
		if _, is := errors.AsType[*apply.RolledBackError](err); err != nil && !is {
			t.Errorf("cut at step %d: %v", at, err)
		}
		if diff := cmp.Diff(before, tree(t, dir, "/var")); diff != "" {
			t.Errorf("cut at step %d on the way to %s and back (-want +got):\n%s", at, last, diff)
		}
		n.close()
		if ended {
			t.Logf("bench: %d power cuts on the way there and back", at/stride)
			return
		}
	}
}
