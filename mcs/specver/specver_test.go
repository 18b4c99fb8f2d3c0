// SPDX-License-Identifier: Apache-2.0

package specver_test

import (
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/mcs/specver"
)

func TestParse(t *testing.T) {
	for _, v := range specver.All {
		if got, err := specver.Parse(v.String()); err != nil || got != v {
			t.Errorf("Parse(%s) = %v, %v", v, got, err)
		}
	}
	for _, s := range []string{"", "2.1.0", "2.3.0", "3.7.0", "3.6.0-experimental", "4.0.0", "three", strings.Repeat("3", 100)} {
		if got, err := specver.Parse(s); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", s, got)
		}
	}
}

func TestOf(t *testing.T) {
	tests := []struct{ doc, want, wantErr string }{
		{`{"ignition":{"version":"3.5.0"}}`, "3.5.0", ""},
		{`{"ignition":{"version":"2.2.0"}}`, "2.2.0", ""},
		{`{"ignition":{"version":"3.7.0"}}`, "", `ignition.version: Ignition spec version "3.7.0" is not served`},
		{`{"ignition":{}}`, "", "ignition.version is missing"},
		{`{}`, "", "ignition.version is missing"},
		{`null`, "", "ignition.version is missing"},
		{`[]`, "", "not an Ignition document"},
		{``, "", "not an Ignition document"},
	}
	for _, tt := range tests {
		got, err := specver.Of([]byte(tt.doc))
		if tt.wantErr == "" && (err != nil || got.String() != tt.want) || tt.wantErr != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.wantErr)) {
			t.Errorf("Of(%s) = %v, %v; want %q %q", tt.doc, got, err, tt.want, tt.wantErr)
		}
	}
}

func TestOrder(t *testing.T) {
	for i, v := range specver.All {
		for j, w := range specver.All {
			if v.Less(w) != (i < j) || specver.Min(v, w) != specver.All[min(i, j)] {
				t.Errorf("%s and %s are in the wrong order", v, w)
			}
		}
	}
}
