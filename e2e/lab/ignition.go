// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Stages are Ignition's, in the order in which an initramfs runs them.
var Stages = []string{"fetch-offline", "fetch", "kargs", "disks", "mount", "files", "umount"}

// BootTimeout ends a Boot that sets none. Ignition retries a server that answers 5xx for ever.
const BootTimeout = 2 * time.Minute

// Boot is what an initramfs does on a machine's first boot: every stage of the real Ignition, on a root folder.
type Boot struct {
	Config  []byte        // the machine's user-data: a stub, or a whole config
	Root    string        // the machine's root; created when missing
	Netns   string        // name of the network namespace to run in; empty means this process's own
	Timeout time.Duration // for all stages together; 0 means BootTimeout
}

// Booted is what a Boot leaves behind apart from the root.
type Booted struct {
	Log        string   // all that Ignition said, every stage headed by its name
	KernelArgs []string // the words Ignition handed to ignition-kargs-helper, such as "--should-exist", "quiet"

	Ended map[string]time.Time // when each stage was done
}

// StageError tells which stage of Ignition failed and what it said last.
type StageError struct {
	Stage  string
	Reason string // Ignition's own last critical line, or the way the process ended
	Log    string
	Err    error
}

func (e *StageError) Error() string { return fmt.Sprintf("ignition stage %s: %s", e.Stage, e.Reason) }
func (e *StageError) Unwrap() error { return e.Err }

// The stand-in for the one program of a real initramfs that is not Ignition's own: it changes the boot loader's entry.
// A scratch root has none, so the words are written down instead.
const kargsHelper = `#!/bin/sh
printf '%s\n' "$@" >> "$KARGS_FILE"
`

// Run runs all stages and stops at the first that fails, with a *StageError. An empty root gets the accounts root and
// core. The result is there in both cases; a stage that did not end in time is killed with all it started.
func (b Boot) Run(ctx context.Context) (Booted, error) {
	program, err := Find("ignition", "ignition")
	if err != nil {
		return Booted{}, err
	}
	root, err := prepareRoot(b.Root)
	if err != nil {
		return Booted{}, err
	}
	work, err := os.MkdirTemp("", "mcsnap-ignition-")
	if err != nil {
		return Booted{}, fmt.Errorf("make a folder for Ignition's own files: %w", err)
	}
	defer os.RemoveAll(work)
	config, kargs := filepath.Join(work, "user-data.ign"), filepath.Join(work, "kargs")
	if err := errors.Join(
		os.WriteFile(config, b.Config, 0o600),
		os.WriteFile(filepath.Join(work, "ignition-kargs-helper"), []byte(kargsHelper), 0o700),
	); err != nil {
		return Booted{}, fmt.Errorf("write what Ignition reads: %w", err)
	}
	timeout := b.Timeout
	if timeout == 0 {
		timeout = BootTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	var log strings.Builder
	ended := map[string]time.Time{}
	for _, stage := range Stages {
		args := []string{program, "--platform=file", "--stage=" + stage, "--root=" + root, "--log-to-stdout",
			"--config-cache=" + filepath.Join(work, "ignition.json"),
			"--state-file=" + filepath.Join(work, "state"),
			"--neednet=" + filepath.Join(work, "neednet")}
		if b.Netns != "" {
			args = append([]string{"ip", "netns", "exec", b.Netns}, args...)
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+work+":"+os.Getenv("PATH"), "KARGS_FILE="+kargs, "IGNITION_CONFIG_FILE="+config)
		out, err := runGroup(cmd)
		fmt.Fprintf(&log, "--- stage %s\n%s", stage, out)
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("not done after %v: %w", timeout, ctx.Err())
			}
			return Booted{Log: log.String(), Ended: ended}, &StageError{Stage: stage, Reason: reason(out, err), Log: log.String(), Err: err}
		}
		ended[stage] = time.Now()
	}
	words, err := os.ReadFile(kargs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Booted{Log: log.String(), Ended: ended}, fmt.Errorf("read the kernel arguments Ignition set: %w", err)
	}
	return Booted{Log: log.String(), KernelArgs: strings.Fields(string(words)), Ended: ended}, nil
}

// runGroup runs a command in a process group of its own, which dies whole when the command's context ends.
func runGroup(cmd *exec.Cmd) ([]byte, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd.CombinedOutput()
}

// reason finds the sentence in Ignition's output that tells why it ended.
func reason(out []byte, err error) string {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err.Error()
	}
	for _, mark := range []string{"CRITICAL", "EMERG", "ERROR"} {
		if at := bytes.LastIndex(out, []byte(mark)); at >= 0 {
			line, _, _ := bytes.Cut(out[at:], []byte("\n"))
			if _, text, ok := bytes.Cut(line, []byte(": ")); ok {
				line = text
			}
			return string(bytes.TrimSpace(line))
		}
	}
	return err.Error()
}
