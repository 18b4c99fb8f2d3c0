// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package node

import (
	"os"
	"strings"
	"testing"
	"time"
)

const stub = `{"ignition":{"version":"3.5.0"},
	"storage":{"files":[{"path":"/etc/hello","mode":384,"contents":{"source":"data:,hello"}}]},
	"systemd":{"units":[
		{"name":"mark.service","enabled":true,"contents":"[Unit]\nDescription=Says that it ran\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo ran >> /var/mark; echo it ran'\n[Install]\nWantedBy=multi-user.target\n"},
		{"name":"fail.service","contents":"[Service]\nType=oneshot\nExecStart=/bin/sh -c 'exit 7'\n"}]}}`

// A machine's whole life: its initramfs, a boot, a look inside, an orderly end, a boot again, a power cut, and a third.
func TestMachine(t *testing.T) {
	ctx := t.Context()
	lan, err := NewLan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n, err := lan.New(ctx, "n1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Remove(); err != nil {
			t.Error(err)
		}
	})
	if _, err := n.Ignite(ctx, []byte(stub), 10*time.Second); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if state, err := n.Settle(ctx); err != nil || state != "running" {
		t.Fatalf("state %q, %v\n%s", state, err, n.Console())
	}
	t.Logf("up after %v", time.Since(began))
	mark, err := n.Unit(ctx, "mark.service")
	if err != nil || mark.ActiveState != "active" || mark.Result != "success" {
		t.Errorf("mark.service: %+v, %v", mark, err)
	}
	if said, err := n.Journal(ctx, "mark.service"); err != nil || !strings.Contains(said, "it ran") {
		t.Errorf("journal: %q, %v", said, err)
	}
	if out, err := n.Run(ctx, "systemctl", "start", "fail.service"); err == nil {
		t.Errorf("a unit that fails was started: %q", out)
	}
	if fail, err := n.Unit(ctx, "fail.service"); err != nil || fail.ActiveState != "failed" || fail.ExitCode != 7 {
		t.Errorf("fail.service: %+v, %v", fail, err)
	}
	if out, err := n.Run(ctx, "ip", "-brief", "address", "show", "eth0"); err != nil || !strings.Contains(out, n.Address) {
		t.Errorf("its address: %q, %v", out, err)
	}
	if err := n.PowerOff(ctx); err != nil {
		t.Fatal(err)
	}

	for _, end := range []func() error{n.CutPower, func() error { return n.PowerOff(ctx) }} {
		if err := n.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Settle(ctx); err != nil {
			t.Fatal(err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(n.Path("/var/mark"))
	if err != nil || string(text) != "ran\nran\nran\n" {
		t.Errorf("after three boots the mark is %q, %v", text, err)
	}
}
