// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcsnap/mcsnap/e2e/server"
)

// jail is what a container runtime makes of a container: a root that cannot be written, mounts in it, a user, and no
// capability that could be had again.
type jail struct {
	Root        string
	Mounts      []mount
	User, Group int
	Groups      []int
	Args, Env   []string
}

type mount struct {
	From, To string // To is below the root
	ReadOnly bool
}

const jailed = "MCSNAP_JAIL"

func TestMain(m *testing.M) {
	if text := os.Getenv(jailed); text != "" {
		fmt.Fprintln(os.Stderr, "enter the container:", enter(text))
		os.Exit(1)
	}
	server.Main(m)
}

// command is this very program in a mount namespace of its own, where TestMain becomes the container's process.
func (j jail) command() *exec.Cmd {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // there is nothing in it that JSON cannot say
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{jailed + "=" + string(text)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Unshareflags: syscall.CLONE_NEWNS}
	return cmd
}

// enter returns only when it failed.
func enter(text string) error {
	runtime.LockOSThread() // capabilities are a thread's
	var j jail
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	var made error
	bind := func(from, to string, readOnly bool) {
		made = errors.Join(made, os.MkdirAll(to, 0o755), unix.Mount(from, to, "", unix.MS_BIND, ""))
		if readOnly {
			made = errors.Join(made, unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		}
	}
	bind(j.Root, j.Root, false)
	for _, m := range j.Mounts {
		bind(m.From, filepath.Join(j.Root, m.To), m.ReadOnly)
	}
	made = errors.Join(made, unix.Mount("", j.Root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if made != nil {
		return made
	}
	if err := errors.Join(unix.Chroot(j.Root), unix.Chdir("/")); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // a capability that this kernel does not know
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := errors.Join(syscall.Setgroups(j.Groups), syscall.Setgid(j.Group), syscall.Setuid(j.User), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return err
	}
	return syscall.Exec(j.Args[0], j.Args, j.Env)
}
