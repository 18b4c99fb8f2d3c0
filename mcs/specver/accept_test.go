// SPDX-License-Identifier: Apache-2.0

package specver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/specver"
)

// What real clients send, and what they get from a config of spec 3.5.0 (field cases 29, 30, 32, 36).
func TestNegotiate(t *testing.T) {
	const ign = "application/vnd.coreos.ignition+json"
	tests := []struct {
		name, accept string
		want         string // "" means not acceptable
	}{
		// Ignition, from the sources of each release
		{"Ignition 0.9", ign + "; version=2.0.0, " + ign + "; version=1; q=0.5, */*; q=0.1", ""},
		{"Ignition 0.35", ign + "; version=2.2.0, " + ign + "; version=1; q=0.5, */*; q=0.1", "2.2.0"},
		{"Ignition 0.35 with 2.4", ign + "; version=2.4.0, " + ign + "; version=1; q=0.5, */*; q=0.1", "2.2.0"},
		{"Ignition 2.0", ign + ";version=3.0.0, */*;q=0.1", "3.0.0"},
		{"Ignition 2.6", ign + ";version=3.1.0, */*;q=0.1", "3.1.0"},
		{"Ignition 2.9", ign + ";version=3.2.0, */*;q=0.1", "3.2.0"},
		{"Ignition 2.14", ign + ";version=3.3.0, */*;q=0.1", "3.3.0"},
		{"Ignition 2.19", ign + ";version=3.4.0, */*;q=0.1", "3.4.0"},
		{"Ignition 2.21", ign + ";version=3.5.0, */*;q=0.1", "3.5.0"},
		{"Ignition 2.26", ign + ";version=3.6.0, */*;q=0.1", "3.5.0"},
		{"Ignition 2.27 and later", ign + ";version=3.7.0, */*;q=0.1", "3.5.0"},
		{"far future minor", ign + ";version=3.99.0, */*;q=0.1", "3.5.0"},
		{"two digits are not cut", ign + ";version=3.10.0", "3.5.0"},
		{"next major", ign + ";version=4.0.0, */*;q=0.1", ""},
		{"first major", ign + "; version=1, */*; q=0.1", ""},

		// people, probes, proxies
		{"no header", "", "3.5.0"},
		{"curl", "*/*", "3.5.0"},
		{"Go, Python", "application/json", "3.5.0"},
		{"kubectl", "application/json, */*", "3.5.0"},
		{"Firefox", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", "3.5.0"},
		{"Chrome", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7", "3.5.0"},
		{"proxy joined two header lines", "*/*, " + ign + ";version=3.2.0", "3.2.0"},
		{"another type with a version", "application/vnd.example+json;version=3.1.0", "3.5.0"},
		{"the type without a version", ign + ", */*;q=0.1", "3.5.0"},
		{"a wildcard subtype", "application/*;version=3.1.0", "3.5.0"},

		// RFC 9110
		{"quoted version", ign + `; version="3.4.0"`, "3.4.0"},
		{"upper case", "Application/VND.CoreOS.Ignition+JSON;VERSION=3.4.0;Q=0.9", "3.4.0"},
		{"spaces around everything", "  " + ign + " ; version=3.4.0 ; q=0.9  ,  */* ; q=0.1", "3.4.0"},
		{"tabs", ign + "\t;\tversion=3.4.0", "3.4.0"},
		{"highest q wins", ign + ";version=3.4.0;q=0.2, " + ign + ";version=3.1.0;q=0.7", "3.1.0"},
		{"q before version", ign + ";q=0.2;version=3.4.0, " + ign + ";q=0.7;version=3.1.0", "3.1.0"},
		{"newest at equal q", ign + ";version=3.1.0, " + ign + ";version=3.4.0", "3.4.0"},
		{"no q is 1", ign + ";version=3.1.0;q=0.999, " + ign + ";version=3.2.0", "3.2.0"},
		{"q=0 is a refusal of that version", ign + ";version=3.4.0;q=0, " + ign + ";version=3.1.0;q=0.1", "3.1.0"},
		{"q=0 for another version than ours", ign + ";version=3.4.0;q=0", "3.5.0"},
		{"q=0 for ours", ign + ";version=3.5.0;q=0, */*", ""},
		{"q out of range counts as none", ign + ";version=3.4.0;q=7, " + ign + ";version=3.2.0;q=0.9", "3.4.0"},
		{"q is no number", ign + ";version=3.4.0;q=NaN", "3.4.0"},
		{"extensions are passed over", ign + `;version=3.4.0;q=1;ext="a,b;version=3.1.0";flag`, "3.4.0"},
		{"a comma in quotes splits nothing", `text/plain;x="a, ` + ign + `;version=3.1.0", ` + ign + `;version=3.2.0`, "3.2.0"},
		{"empty elements", ",, ," + ign + ";version=3.2.0,,", "3.2.0"},
		{"the servable one of several", ign + ";version=4.0.0, " + ign + ";version=3.3.0;q=0.1", "3.3.0"},
		{"a pre-release reads what came before it", ign + ";version=3.3.0-experimental", "3.2.0"},
		{"a pre-release of the first", ign + ";version=3.0.0-experimental", ""},
		{"build metadata", ign + ";version=3.3.0+fcos", "3.3.0"},
		{"a patch level", ign + ";version=3.3.9", "3.3.0"},
		{"a short form", ign + ";version=3.3", "3.3.0"},

		// garbage is no entry
		{"version=3.x", ign + ";version=3.x", "3.5.0"},
		{"empty version", ign + ";version=", "3.5.0"},
		{"negative version", ign + ";version=-3.1.0", "3.5.0"},
		{"four numbers", ign + ";version=3.1.0.0", "3.5.0"},
		{"a number beyond 64 bits", ign + ";version=3.99999999999999999999.0", "3.5.0"},
		{"two versions in one entry", ign + ";version=3.1.0;version=3.2.0", "3.5.0"},
		{"only separators", ";;,,;;==", "3.5.0"},
		{"an open quote", ign + `;version="3.1.0`, "3.5.0"},
		{"garbage beside a good entry", ign + ";version=banana, " + ign + ";version=3.2.0", "3.2.0"},
		{"8 KB of garbage", strings.Repeat("\x00\xff;,=\"/", 1200), "3.5.0"},
		{"8 KB of entries", strings.Repeat(ign+";version=3.1.0,", 170), "3.1.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := specver.Negotiate(tt.accept, specver.V3_5, specver.Version{})
			if tt.want == "" {
				var na *specver.NotAcceptableError
				if !errors.As(err, &na) {
					t.Fatalf("got %v, %v; want a NotAcceptableError", got, err)
				}
				if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 400 {
					t.Errorf("the error is not one short line: %q", err)
				}
				return
			}
			if err != nil || got.String() != tt.want {
				t.Errorf("got %v, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// Nothing is ever converted up, whatever is asked for or configured.
func TestNegotiateNeverUp(t *testing.T) {
	accepts := []string{"", "*/*", "application/vnd.coreos.ignition+json;version=3.6.0",
		"application/vnd.coreos.ignition+json;version=3.2.0", "application/vnd.coreos.ignition+json;version=2.2.0"}
	for _, own := range specver.All[1:] {
		for _, def := range append(slices.Clone(specver.All), specver.Version{}) {
			for _, accept := range accepts {
				got, err := specver.Negotiate(accept, own, def)
				if err != nil || own.Less(got) {
					t.Errorf("Negotiate(%q, %s, %s) = %s, %v: newer than the config's own", accept, own, def, got, err)
				}
			}
		}
	}
}

// --default-spec 2.2.0 is OpenShift's answer to curl.
func TestNegotiateDefault(t *testing.T) {
	for accept, want := range map[string]specver.Version{
		"":                                     specver.V2_2,
		"*/*":                                  specver.V2_2,
		"application/vnd.coreos.ignition+json": specver.V2_2,
		"application/vnd.coreos.ignition+json;version=3.3.0": specver.V3_3,
	} {
		if got, err := specver.Negotiate(accept, specver.V3_5, specver.V2_2); err != nil || got != want {
			t.Errorf("Negotiate(%q) = %v, %v; want %v", accept, got, err, want)
		}
	}
}

func FuzzNegotiate(f *testing.F) {
	f.Add("application/vnd.coreos.ignition+json;version=3.6.0, */*;q=0.1")
	f.Add(`application/vnd.coreos.ignition+json; version="2.2.0"; q=0.5, application/vnd.coreos.ignition+json; version=1`)
	f.Add(`application/vnd.coreos.ignition+json;version="\`)
	f.Fuzz(func(t *testing.T, accept string) {
		got, err := specver.Negotiate(accept, specver.V3_4, specver.Version{})
		var na *specver.NotAcceptableError
		switch {
		case errors.As(err, &na) && len(na.Asked) > 0:
		case err == nil && slices.Contains(specver.All, got) && !specver.V3_4.Less(got):
		default:
			t.Errorf("Negotiate(%q) = %v, %v", accept, got, err)
		}
	})
}
