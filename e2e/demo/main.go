// SPDX-License-Identifier: Apache-2.0

// Command demo tells one node's life on this machine, with the programs that were built into bin/ and the real
// Ignition: a config is served, a machine boots from it, the cluster deletes it, and the node still knows what it is.
// Each step is one line, and each line was checked; the first that is not as told ends the demo with a non-zero exit.
//
//	KEEP=1 make demo    leaves the node's root, the cluster's folder and the server's log to look at
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/mcsnap/mcsnap/e2e/lab"
)

// The story takes seconds, and must take less than a minute where nothing else runs; on a busy machine it may be slow.
const patience = 5 * time.Minute

func main() {
	// The server is told to die with the thread that started it: this one, so it must not end before the program does.
	runtime.LockOSThread()
	if err := asRoot(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(4)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Getenv("KEEP") != "")
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d, err := prepare()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.server.Stop())
		if keep {
			fmt.Printf("\nKept: the node's root in %s/root, the cluster in %[1]s/cluster, the server's log in %[1]s/mcs.log\n", d.work)
			return
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "\nWhat the server said last:\n%s\n", d.server.LastWords())
		}
		err = errors.Join(err, os.RemoveAll(d.work))
	}()

	fmt.Printf("One node's life, with the real Ignition %s\n\n", d.ignitionVersion)
	for _, step := range []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"a", d.serve}, {"b", d.boot}, {"c", d.moveOn}, {"d", d.lookUp}, {"e", d.handOver}, {"f", d.damage},
	} {
		began := time.Now()
		line, err := step.do(ctx)
		if err != nil {
			return fmt.Errorf("step (%s) did not go as told: %w", step.name, err)
		}
		fmt.Printf("(%s) %4.1f s  %s\n", step.name, time.Since(began).Seconds(), line)
	}
	fmt.Printf("\nThe cluster has forgotten %s.\nThe node has not, and nothing had to be pinned for it.\n", d.born.Name)
	return nil
}

// asRoot starts the demo again under sudo when it is needed: the node has accounts, and only root can make those.
func asRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	sudo, err := exec.LookPath("sudo")
	if err != nil {
		return errors.New("the node's root has accounts and files of their own: run this as root, or install sudo")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"sudo", "env"}
	for _, name := range []string{"HOME", "PATH", "KEEP", "MCSNAP_LAB", "XDG_CACHE_HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			args = append(args, name+"="+value)
		}
	}
	return syscall.Exec(sudo, append(args, self), os.Environ())
}

// prepare finds everything the steps need, so that a missing part is told before the story begins.
func prepare() (*demo, error) {
	version, err := ignitionVersion()
	if err != nil {
		return nil, err
	}
	return newDemo(version)
}

func ignitionVersion() (string, error) {
	ignition, err := lab.Find("ignition", "ignition")
	if err != nil {
		return "", err
	}
	out, err := exec.Command(ignition, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask Ignition for its version: %w", err)
	}
	var version string
	if _, err := fmt.Sscanf(string(out), "Ignition %s", &version); err != nil {
		return "", fmt.Errorf("Ignition says %q; want its version", out)
	}
	return version, nil
}
