// SPDX-License-Identifier: Apache-2.0

// Package specver knows the Ignition spec versions that are served: which one a client asks for (Negotiate), and how a
// config is rewritten for a lower one (Down). It only ever goes down, and it refuses, naming the field, what a lower
// version cannot say. It knows nothing of HTTP beyond the value of one header, and nothing of MachineConfigs.
package specver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/coreos/go-semver/semver"
)

// Version is an Ignition spec version; the patch level is always 0 in published specs and is not kept.
type Version struct{ Major, Minor int }

// The versions that are served. 2.2 is OpenShift's own choice for every 2.x client.
var (
	V2_2 = Version{2, 2}
	V3_0 = Version{3, 0}
	V3_1 = Version{3, 1}
	V3_2 = Version{3, 2}
	V3_3 = Version{3, 3}
	V3_4 = Version{3, 4}
	V3_5 = Version{3, 5}
	V3_6 = Version{3, 6}

	// All lists every served version, oldest first. It must not be changed.
	All = []Version{V2_2, V3_0, V3_1, V3_2, V3_3, V3_4, V3_5, V3_6}
	// Newest is the newest version that is known.
	Newest = V3_6
)

// String gives the form that Ignition documents carry, such as "3.5.0".
func (v Version) String() string { return fmt.Sprintf("%d.%d.0", v.Major, v.Minor) }

// IsZero reports whether v is unset.
func (v Version) IsZero() bool { return v == Version{} }

// Compare orders versions: negative when v is older than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor))
}

// Less reports whether v is older than w.
func (v Version) Less(w Version) bool { return v.Compare(w) < 0 }

// Min is the older of two versions.
func Min(v, w Version) Version {
	if w.Less(v) {
		return w
	}
	return v
}

// Parse reads one of the served versions ("3.4.0"; "3.4" is understood too), as flags and configs name them.
func Parse(s string) (Version, error) {
	asked, ok := parseAsked(s)
	for _, v := range All {
		if ok && !asked.prerelease && asked.Version == v {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("Ignition spec version %q is not served: use one of %s", clip(s), list(All))
}

// Of reads the version that an Ignition document declares in ignition.version. The document is not validated further.
func Of(ignition []byte) (Version, error) {
	var doc struct {
		Ignition struct {
			Version *string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal(ignition, &doc); err != nil {
		return Version{}, fmt.Errorf("not an Ignition document: it is not a JSON object with an ignition section: write ignition.version")
	}
	if doc.Ignition.Version == nil {
		return Version{}, fmt.Errorf("ignition.version is missing: write the spec version, such as %q", Newest)
	}
	v, err := Parse(*doc.Ignition.Version)
	if err != nil {
		return Version{}, fmt.Errorf("ignition.version: %w", err)
	}
	return v, nil
}

// asked is a version as a client wrote it: it need not be one that is served.
type asked struct {
	Version
	prerelease bool
}

// parseAsked reads a version from a header or a flag. Short forms ("1", "3.4") are taken, because Ignition 0.x sends
// "version=1"; numbers beyond six digits are no versions.
func parseAsked(s string) (asked, bool) {
	if len(s) > 64 || strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+") != "" {
		return asked{}, false
	}
	core, _, _ := strings.Cut(s, "+")
	core, pre, isPre := strings.Cut(core, "-")
	if n := strings.Count(core, "."); n < 2 && !isPre {
		s = core + strings.Repeat(".0", 2-n)
	}
	for _, part := range strings.Split(core, ".") {
		if len(part) > 6 || part == "" {
			return asked{}, false
		}
		if _, err := strconv.ParseUint(part, 10, 32); err != nil {
			return asked{}, false
		}
	}
	v, err := semver.NewVersion(s)
	if err != nil || (isPre && pre == "") {
		return asked{}, false
	}
	return asked{Version{int(v.Major), int(v.Minor)}, isPre}, true
}

// serve picks what to answer to a client that asks for a: the newest known version that is not newer than what it can
// read and has the same major number. A pre-release comes before its release, so "3.5.0-experimental" reads 3.4.0.
func (a asked) serve() (Version, bool) {
	for i := len(All) - 1; i >= 0; i-- {
		v := All[i]
		if v.Major != a.Major {
			continue
		}
		if c := v.Compare(a.Version); c < 0 || (c == 0 && !a.prerelease) {
			return v, true
		}
	}
	return Version{}, false
}

func list(vs []Version) string {
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = v.String()
	}
	return strings.Join(names, ", ")
}

// clip keeps a quoted value of the input short in an error.
func clip(s string) string {
	if len(s) > 32 {
		return s[:32] + "…"
	}
	return s
}
