// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemctl works on the unit files below a root, as whoever mends or breaks a node does.
func systemctl(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := exec.Command("systemctl", append([]string{"--root=" + dir}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("systemctl %v: %v\n%s", args, err, out)
	}
}

// What somebody enables, disables or masks by hand is drift, with the real systemctl; what the image has so is not.
func TestUnitsDrift(t *testing.T) {
	also := strings.Replace(service("also"), "[Install]\n", "[Install]\nAlso=image4.service\n", 1)
	c := config{units: []string{
		unitJSON("wanted.service", service("wanted"), on), unitJSON("idle.service", service("idle"), off),
		`{"name":"image1.service","enabled":true}`, `{"name":"image2.service","enabled":false}`, `{"name":"image3.service","mask":true}`,
		`{"name":"absent.service","enabled":true}`, unitJSON("static.service", "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n", on),
		`{"name":"image4.service","enabled":false}`, unitJSON("also.service", also, on), // which enables image4 all the same
	}}
	for name, tc := range map[string]struct {
		do, undo []string
		says     string
	}{
		"nothing":               {nil, nil, ""},
		"disabled":              {[]string{"disable", "wanted.service"}, []string{"enable", "wanted.service"}, "wanted.service is disabled, want it enabled"},
		"the image's, disabled": {[]string{"disable", "image1.service"}, []string{"enable", "image1.service"}, "image1.service is disabled, want it enabled"},
		"enabled":               {[]string{"enable", "idle.service"}, []string{"disable", "idle.service"}, "idle.service is enabled, want it disabled"},
		"the image's, enabled":  {[]string{"enable", "image2.service"}, []string{"disable", "image2.service"}, "image2.service is enabled, want it disabled"},
		"masked":                {[]string{"mask", "image1.service"}, []string{"unmask", "image1.service"}, "image1.service is masked, want it enabled"},
		"masked, was disabled":  {[]string{"mask", "image2.service"}, []string{"unmask", "image2.service"}, "image2.service is masked, want it disabled"},
		"unmasked":              {[]string{"unmask", "image3.service"}, []string{"mask", "image3.service"}, "/etc/systemd/system/image3.service is missing"},
		"not the config's":      {[]string{"enable", "image5.service"}, []string{"disable", "image5.service"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, s := image(t), c.seal(t, "1")
			firstBoot(t, dir, s)
			u := node(t, dir, s, nil)
			check := func(says string) {
				t.Helper()
				drift, err := u.Drift(t.Context())
				if err != nil || strings.Join(drift, "; ") != says {
					t.Fatalf("drift is %q, %v; want %q", drift, err, says)
				}
			}
			check("")
			if tc.do != nil {
				systemctl(t, dir, tc.do...)
				check(tc.says)
				systemctl(t, dir, tc.undo...)
			}
			check("")
		})
	}
}

// An update puts right what was disabled and enabled by hand, also where it has nothing to change about these units.
func TestUpdateMendsUnits(t *testing.T) {
	units := []string{unitJSON("wanted.service", service("wanted"), on), `{"name":"image2.service","enabled":false}`}
	dir, s := image(t), config{units: units}.seal(t, "1")
	firstBoot(t, dir, s)
	u := node(t, dir, s, nil)
	if drift, err := u.Drift(t.Context()); err != nil || len(drift) > 0 {
		t.Fatal(drift, err)
	}
	systemctl(t, dir, "disable", "wanted.service")
	systemctl(t, dir, "enable", "image2.service")
	for i, want := range []int{2, 0} {
		result, err := u.Update(t.Context(), config{units: units, files: []string{fileJSON("/etc/a", fmt.Sprint(i))}}.seal(t, fmt.Sprint(2+i)))
		if err != nil || len(result.Units) != want {
			t.Errorf("update %d: %+v, %v; want %d units", i+1, result, err, want)
		}
	}
	if drift, err := u.Drift(t.Context()); err != nil || len(drift) > 0 {
		t.Errorf("after the update: %v, %v", drift, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "etc/systemd/system/multi-user.target.wants/image2.service")); err == nil {
		t.Error("image2.service is still enabled")
	}
}
