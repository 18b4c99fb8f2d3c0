// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"slices"
	"strings"
)

// Version is an Ignition spec version, such as "3.4.0". Versions compare as text.
type Version string

// The versions a stub can have. DefaultVersion is one that everything since 2023 reads.
const (
	V2_2 Version = "2.2.0"
	V3_0 Version = "3.0.0"
	V3_1 Version = "3.1.0"
	V3_2 Version = "3.2.0"
	V3_3 Version = "3.3.0"
	V3_4 Version = "3.4.0"
	V3_5 Version = "3.5.0"
	V3_6 Version = "3.6.0"

	DefaultVersion = V3_4
)

// Versions are all of them, oldest first.
var Versions = []Version{V2_2, V3_0, V3_1, V3_2, V3_3, V3_4, V3_5, V3_6}

// ParseVersion reads "3.4" or "3.4.0". The error is an [InputError].
func ParseVersion(text string) (Version, error) {
	for _, v := range Versions {
		if text == string(v) || text+".0" == string(v) {
			return v, nil
		}
	}
	return "", wrong("spec version", "%.20q is none of %s", text, versionList())
}

func (v Version) known() bool { return slices.Contains(Versions, v) }

// ReadBy names the Ignitions that read the version, and the systems that are known by theirs. Field case 39: a machine
// whose Ignition does not read its user-data fails with next to no text on its console.
func (v Version) ReadBy() string {
	return map[Version]string{
		V2_2: "Ignition 0.22 to 0.35 (OpenShift 4.1 to 4.5); no Ignition 2.x",
		V3_0: "Ignition 2.0 and newer",
		V3_1: "Ignition 2.3 and newer (OpenShift 4.6 and newer)",
		V3_2: "Ignition 2.7 and newer (OpenShift 4.7 and newer)",
		V3_3: "Ignition 2.11 and newer",
		V3_4: "Ignition 2.15 and newer (OpenShift 4.14 and newer)",
		V3_5: "Ignition 2.20 and newer (OpenShift 4.19 and newer)",
		V3_6: "Ignition 2.26 and newer",
	}[v]
}

func versionList() string {
	var names []string
	for _, v := range Versions {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}
