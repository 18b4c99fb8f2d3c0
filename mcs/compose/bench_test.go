// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"testing"

	"github.com/vincent-petithory/dataurl"

	"github.com/mcsnap/mcsnap/mcs/compose"
	"github.com/mcsnap/mcsnap/mcs/specver"
)

// measured is OpenShift's rendered config where it is at hand, and the example cluster's otherwise.
func measured(b *testing.B) fixture {
	all := fixtures(b)
	return all[len(all)-1]
}

// BenchmarkCompose is what one change of one pool costs, per spec version.
func BenchmarkCompose(b *testing.B) {
	f := measured(b)
	for _, v := range []specver.Version{specver.V3_5, specver.V3_4, specver.V3_1, specver.V2_2} {
		b.Run(v.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compose.Compose(everything(f.snapshot), v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBodyBytes prints what goes over the wire for one booting node, against what OpenShift's server sends.
func BenchmarkBodyBytes(b *testing.B) {
	f := measured(b)
	in := everything(f.snapshot)
	in.CompatContentFile = false
	var body *compose.Body
	for b.Loop() {
		var err error
		if body, err = compose.Compose(in, specver.V3_5); err != nil {
			b.Fatal(err)
		}
	}
	upstream := len(openshift(b, f))
	if f.name == "rendered-worker-7e1b47bed97a93875424c5a769300940" {
		upstream = 424_456 // measured on OpenShift's server itself
	}
	identity, compressed := upstream*30/100, 80_000
	fmt.Fprintf(os.Stderr, "bench: body-bytes-3.5.0 %d bytes goal <=%d\n", len(body.JSON), identity)
	fmt.Fprintf(os.Stderr, "bench: body-gzip-bytes-3.5.0 %d bytes goal <=%d\n", len(body.Gzip), compressed)
	if len(body.JSON) > identity || len(body.Gzip) > compressed {
		b.Errorf("%s: the body has %d bytes (%d as gzip); OpenShift's has %d", f.name, len(body.JSON), len(body.Gzip), upstream)
	}
	b.ReportMetric(float64(len(body.JSON)), "identity-B")
	b.ReportMetric(float64(len(body.Gzip)), "gzip-B")
}

// openshift is the size of what OpenShift's own server composes for a config of this size, built after its rules: the
// config, and each added file as escaped text, among them an indented copy of the whole MachineConfig.
func openshift(b *testing.B, f fixture) []byte {
	b.Helper()
	var config, object, spec map[string]any
	exported, err := f.snapshot.Export("")
	if err != nil {
		b.Fatal(err)
	}
	for raw, into := range map[string]*map[string]any{string(f.snapshot.IgnitionConfig()): &config, string(exported): &object} {
		if err := json.Unmarshal([]byte(raw), into); err != nil {
			b.Fatal(err)
		}
	}
	content, _ := json.MarshalIndent(object, "", "    ")
	spec = object["spec"].(map[string]any)
	spec["config"] = map[string]any{"ignition": map[string]any{"version": f.own.String()}}
	encapsulated, _ := json.Marshal(object)
	storage := config["storage"].(map[string]any)
	for p, text := range map[string][]byte{
		compose.ContentPath:      content,
		compose.EncapsulatedPath: encapsulated,
		compose.KubeconfigPath:   everything(f.snapshot).Kubeconfig,
		compose.AnnotationsPath:  []byte(`{"machineconfiguration.openshift.io/currentConfig":"` + f.snapshot.Name() + `"}`),
	} {
		source := url.URL{Scheme: "data", Opaque: "," + dataurl.Escape(text)}
		storage["files"] = append(storage["files"].([]any), map[string]any{
			"path": p, "mode": 420, "overwrite": true, "contents": map[string]any{"source": source.String()},
		})
	}
	body, err := json.Marshal(config)
	if err != nil {
		b.Fatal(err)
	}
	return body
}
