// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
	"github.com/mcsnap/mcsnap/snapshot"
)

// Whatever config was rendered: a body that its version's parser takes and that carries the snapshot, or one line of a
// known kind; never a panic.
func FuzzCompose(f *testing.F) {
	f.Add([]byte(`{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,%20","compression":""}}]}}`))
	f.Add([]byte(`{"ignition":{"version":"3.6.0","config":{"merge":[{"source":"data:,%7B%22ignition%22:%7B%22version%22:%223.0.0%22%7D%7D"}]}},"kernelArguments":{"shouldExist":["a"]}}`))
	f.Add([]byte(`{"ignition":{"version":"3.0.0"},"systemd":{"units":[{"name":"a.service","dropins":[{"name":"b.conf","contents":""}]}]},"storage":{"links":[{"path":"/l","target":"/a","hard":true}]}}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		s, err := snapshot.Seal([]byte(`{"apiVersion":"machineconfiguration.openshift.io/v1","kind":"MachineConfig",`+
			`"metadata":{"name":"rendered-worker-0123456789abcdef0123456789abcdef"},"spec":{"config":`+string(config)+`}}`), "worker")
		if err != nil {
			return
		}
		own, err := compose.Own(s)
		if err != nil {
			return
		}
		for _, v := range []specver.Version{own, specver.Min(own, specver.V3_0), specver.V2_2} {
			body, err := compose.Compose(everything(s), v)
			var invalid *compose.InvalidConfigError
			var lacks *specver.InexpressibleError
			var taken *snapshot.PathTakenError
			switch {
			case errors.As(err, &invalid), errors.As(err, &lacks), errors.As(err, &taken):
				if strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: several lines: %q", v, err)
				}
			case err != nil:
				t.Errorf("%s: an error of no known kind: %v", v, err)
			default:
				if _, err := specver.Check(body.JSON, v); err != nil {
					t.Errorf("%s: %v", v, err)
				}
				if inside, err := snapshot.Extract(body.JSON); err != nil || inside.Digest() != s.Digest() {
					t.Errorf("%s: the snapshot inside: %v", v, err)
				}
			}
		}
	})
}
