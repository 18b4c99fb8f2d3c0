// SPDX-License-Identifier: Apache-2.0

// Package served proves what the server composes against the Ignitions that read it: every config of
// mcs/compose/testdata, the example cluster's and OpenShift's own, in every spec version, leaves the same machine behind
// as the config that was rendered, plus the files that are added. Ignition itself is the judge: 2.26 for spec 3.0 to 3.6
// and 0.35 for 2.2. What needs disks is not applied here; mcs/compose compares it field by field.
package served
