// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcsnap/mcsnap/e2e/lab"
)

// Node is one machine. It is off until Start, and again after PowerOff or CutPower; its root keeps what was written.
type Node struct {
	Name    string
	Address string

	dir     string
	console console
	machine *exec.Cmd // nspawn, while the machine is on
	gone    chan error
}

// Root is the machine's root folder. While the machine is on, what it mounted over it is not seen here.
func (n *Node) Root() string { return filepath.Join(n.dir, "root") }

// Path is a file of the machine.
func (n *Node) Path(name string) string { return filepath.Join(n.Root(), name) }

// Ignite runs the first boot's initramfs: Ignition with the stub as the machine's only user-data, over the machine's
// own network.
func (n *Node) Ignite(ctx context.Context, stub []byte, limit time.Duration) (lab.Booted, error) {
	booted, err := lab.Boot{Config: stub, Root: n.Root(), Netns: n.Name, Timeout: limit}.Run(ctx)
	if err != nil {
		return booted, fmt.Errorf("node %s: %w", n.Name, err)
	}
	return booted, nil
}

// SwitchOn switches the machine on and returns at once.
func (n *Node) SwitchOn() error {
	if n.machine != nil {
		return fmt.Errorf("node %s is on already", n.Name)
	}
	groups, err := n.controlGroups()
	if err != nil {
		return err
	}
	// A shell joins the machine's own control groups before it becomes nspawn: with --keep-unit nspawn builds on those.
	script := `for group in ` + strings.Join(groups, " ") + `; do echo $$ >$group/cgroup.procs; done; exec "$@"`
	machine := exec.Command("sh", "-euc", script, "machine",
		"systemd-nspawn", "--quiet", "--boot", "--directory="+n.Root(), "--machine="+n.Name, "--register=no", "--keep-unit",
		"--console=read-only", "--network-namespace-path=/run/netns/"+n.Name)
	machine.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	machine.Stdout, machine.Stderr = &n.console, &n.console
	machine.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := machine.Start(); err != nil {
		return fmt.Errorf("node %s: switch it on: %w", n.Name, err)
	}
	gone := make(chan error, 1)
	go func() { gone <- machine.Wait() }()
	n.machine, n.gone = machine, gone
	return nil
}

// Start switches the machine on and returns when its systemd answers.
func (n *Node) Start(ctx context.Context) error {
	if err := n.SwitchOn(); err != nil {
		return err
	}
	if !until(ctx, time.Minute, func() bool { return n.answers(ctx) }) {
		return errors.Join(fmt.Errorf("node %s: systemd does not answer; its console says:\n%s", n.Name, n.Console()), n.CutPower())
	}
	return nil
}

// answers tells whether the machine's service manager can be asked.
func (n *Node) answers(ctx context.Context) bool {
	_, err := n.Run(ctx, "systemctl", "show", "--property=Version")
	return err == nil
}

// Run runs a command on the machine and returns what it printed.
func (n *Node) Run(ctx context.Context, args ...string) (string, error) {
	if n.machine == nil {
		return "", fmt.Errorf("node %s is off", n.Name)
	}
	leader, err := child(n.machine.Process.Pid)
	if err != nil {
		return "", fmt.Errorf("node %s has no PID 1: %w", n.Name, err)
	}
	enter := []string{"--target", strconv.Itoa(leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd"}
	out, err := exec.CommandContext(ctx, "nsenter", append(enter, args...)...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("node %s: %s: %w: %s", n.Name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// Settle waits until the machine has started whatever it starts, and returns "running" or "degraded".
func (n *Node) Settle(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	out, err := n.Run(ctx, "systemctl", "is-system-running", "--wait")
	state := strings.TrimSpace(out)
	if state == "running" || state == "degraded" {
		return state, nil
	}
	return state, errors.Join(err, fmt.Errorf("node %s does not settle; its console says:\n%s", n.Name, n.Console()))
}

// Unit is what the machine's service manager says of a unit.
type Unit struct {
	ActiveState   string // active, inactive, failed, …
	Result        string // success, exit-code, …
	ExitCode      int    // of its main process
	ConditionsMet bool
}

// Unit asks for a unit's state.
func (n *Node) Unit(ctx context.Context, name string) (Unit, error) {
	out, err := n.Run(ctx, "systemctl", "show", "--property=LoadState,ActiveState,Result,ExecMainStatus,ConditionResult", name)
	if err != nil {
		return Unit{}, err
	}
	says := map[string]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		says[key] = value
	}
	if says["LoadState"] != "loaded" {
		return Unit{}, fmt.Errorf("node %s has no unit %s that can be loaded: %s", n.Name, name, says["LoadState"])
	}
	code, err := strconv.Atoi(says["ExecMainStatus"])
	if err != nil && says["ExecMainStatus"] != "" { // targets have none
		return Unit{}, fmt.Errorf("node %s: exit code of %s: %w", n.Name, name, err)
	}
	return Unit{ActiveState: says["ActiveState"], Result: says["Result"], ExitCode: code, ConditionsMet: says["ConditionResult"] == "yes"}, nil
}

// Journal is what a unit wrote in this boot.
func (n *Node) Journal(ctx context.Context, unit string) (string, error) {
	return n.Run(ctx, "journalctl", "--boot", "--no-pager", "--output=cat", "--unit="+unit)
}

// PowerOff shuts the machine down in order.
func (n *Node) PowerOff(ctx context.Context) error {
	if _, err := n.Run(ctx, "systemctl", "poweroff", "--no-block"); err != nil {
		return err
	}
	select {
	case err := <-n.gone:
		n.machine = nil
		if err != nil {
			return fmt.Errorf("node %s: power off: %w", n.Name, err)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.Join(fmt.Errorf("node %s: did not power off within a minute", n.Name), n.CutPower())
	}
}

// CutPower ends the machine at once: nothing on it gets a chance to finish. What it had written stays.
func (n *Node) CutPower() error {
	if n.machine == nil {
		return nil
	}
	if leader, err := child(n.machine.Process.Pid); err == nil {
		// PID 1 of a namespace takes everything in it along.
		if err := syscall.Kill(leader, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("node %s: cut its power: %w", n.Name, err)
		}
	}
	if err := syscall.Kill(-n.machine.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("node %s: cut its power: %w", n.Name, err)
	}
	<-n.gone
	n.machine = nil
	return nil
}

// Remove cuts the machine's power and takes its disk and its cable away.
func (n *Node) Remove() error {
	if err := n.CutPower(); err != nil {
		return err
	}
	if err := sequence(context.Background(), "ip netns delete "+n.Name, "umount "+n.Root()); err != nil {
		return fmt.Errorf("remove node %s: %w", n.Name, err)
	}
	return os.RemoveAll(n.dir)
}

// Console is what all boots of the machine printed.
func (n *Node) Console() string { return n.console.String() }

// controlGroups makes the machine's own group below this program's, in each hierarchy that systemd uses.
func (n *Node) controlGroups() (groups []string, err error) {
	for _, own := range strings.Fields(os.Getenv(inside)) {
		group := filepath.Join(own, n.Name)
		if err := os.MkdirAll(group, 0o755); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Name, err)
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// child returns the only child of a process.
func child(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// console collects output while others read what is there already.
type console struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}
