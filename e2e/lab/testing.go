// SPDX-License-Identifier: Apache-2.0

package lab

import "testing"

// Ignition returns the path of the real Ignition.
func Ignition(t testing.TB) string {
	t.Helper()
	return must(t)(Find("ignition", "ignition"))
}

// IgnitionValidate returns the path of Ignition's own validator: `ignition-validate FILE` ends with 0 when a config is
// valid.
func IgnitionValidate(t testing.TB) string {
	t.Helper()
	return must(t)(Find("ignition", "ignition-validate"))
}

// ApplyIgnition boots a machine on a root folder with the given user-data, and fails the test when Ignition does.
// Where failing is what is tested, use Boot.
func ApplyIgnition(t testing.TB, userData []byte, root string) Booted {
	t.Helper()
	booted, err := Boot{Config: userData, Root: root}.Run(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, booted.Log)
	}
	return booted
}

// Kube returns the folder with etcd, kube-apiserver and kubectl, which is what envtest calls KUBEBUILDER_ASSETS, and
// kube-controller-manager, which holds the garbage collector.
func Kube(t testing.TB) string {
	t.Helper()
	return must(t)(Bin("kube"))
}

// CRDs returns the folder with the resource definitions of other projects, a file each.
func CRDs(t testing.TB) string {
	t.Helper()
	return must(t)(Bin("crds"))
}

func must(t testing.TB) func(string, error) string {
	t.Helper()
	return func(value string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
