// SPDX-License-Identifier: Apache-2.0

package example

import (
	"regexp"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_5"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/yaml"

	"github.com/mcsnap/mcsnap/snapshot"
)

// Four generations have four names of the shape the controller gives, each is valid Ignition without a warning, and
// each can be sealed.
func TestGenerations(t *testing.T) {
	shape := regexp.MustCompile(`^rendered-worker-[0-9a-f]{32}$`)
	seen := map[string]bool{}
	for n := 1; n <= 4; n++ {
		g, err := Render(n)
		if err != nil {
			t.Fatal(err)
		}
		if !shape.MatchString(g.Name) || seen[g.Name] {
			t.Errorf("generation %d is called %q; want a name of its own like rendered-worker-<32 hex>", n, g.Name)
		}
		seen[g.Name] = true

		var config mcfgv1.MachineConfig
		if err := yaml.UnmarshalStrict(g.MachineConfig, &config); err != nil {
			t.Fatal(err)
		}
		parsed, report, err := v3_5.Parse(config.Spec.Config.Raw)
		if err != nil || len(report.Entries) > 0 {
			t.Errorf("generation %d: %v\n%s", n, err, report.String())
		}
		if files, units := len(parsed.Storage.Files), len(parsed.Systemd.Units); files < 48 || units < 25 {
			t.Errorf("generation %d has %d files and %d units; a real node has some 50 and 25", n, files, units)
		}
		s, err := snapshot.Seal(g.MachineConfig, Pool)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name() != g.Name || s.Pool() != Pool {
			t.Errorf("generation %d was sealed as %s of pool %s", n, s.Name(), s.Pool())
		}
		var pool mcfgv1.MachineConfigPool
		if err := yaml.UnmarshalStrict(g.PoolObject, &pool); err != nil {
			t.Fatal(err)
		}
		if pool.Spec.Configuration.Name != g.Name || pool.Status.Configuration.Name != g.Name {
			t.Errorf("the pool of generation %d names %q and %q", n, pool.Spec.Configuration.Name, pool.Status.Configuration.Name)
		}
	}
	if _, err := Render(0); err == nil {
		t.Error("generation 0 was rendered")
	}
}
