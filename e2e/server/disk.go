// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// mountAndRun mounts a tmpfs with the options $1 on $2, in mounts of its own, and becomes the rest.
const mountAndRun = `mkdir -p "$2" && mount --make-rprivate / && mount -t tmpfs -o "mode=700,$1" tmpfs "$2" && shift 2 && exec "$@"`

// ownDisk has a command run with its state on a disk of its own.
func (s *Server) ownDisk(cmd *exec.Cmd) {
	cmd.Args = append([]string{"sh", "-c", mountAndRun, "sh", s.Disk, s.State, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
}

// OnDisk is the path of a file of the server's state, also when the state is on a disk that only the server sees.
func (s *Server) OnDisk(name string) string {
	path := filepath.Join(s.State, name)
	if s.Disk != "" && s.cmd != nil {
		path = filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "root", path)
	}
	return path
}

// ReadOnly has the running server find its disk read-only, by mounting it over itself: files that are open stay so.
func (s *Server) ReadOnly() error {
	return s.inItsMounts(`mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"`)
}

// Writable undoes ReadOnly.
func (s *Server) Writable() error { return s.inItsMounts(`umount "$1"`) }

// inItsMounts runs a shell command, with the state folder as $1, in the mounts of the running server.
func (s *Server) inItsMounts(command string) error {
	args := []string{"--target", strconv.Itoa(s.cmd.Process.Pid), "--mount"}
	if os.Getuid() != 0 {
		args = append(args, "--user", "--preserve-credentials")
	}
	out, err := exec.Command("nsenter", append(args, "sh", "-c", command, "sh", s.State)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("the server's disk: %w: %s", err, out)
	}
	return nil
}
