// SPDX-License-Identifier: Apache-2.0

package specver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	errors2 "github.com/coreos/ignition/config/shared/errors"
	v2_2 "github.com/coreos/ignition/config/v2_2/types"
	validate2 "github.com/coreos/ignition/config/validate"
	report2 "github.com/coreos/ignition/config/validate/report"
	"github.com/coreos/ignition/v2/config/v3_0"
	"github.com/coreos/ignition/v2/config/v3_1"
	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_3"
	"github.com/coreos/ignition/v2/config/v3_4"
	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_6"
	"github.com/coreos/vcontext/report"

	"github.com/mcsnap/mcsnap/snapshot/wording"
)

// Check reads a config with the parser of exactly this version. It returns the parser's warnings, one line each, and an
// error in one line if the config is not valid. Neither quotes the contents of a file or unit.
func Check(body []byte, v Version) (warnings []string, err error) {
	if v == V2_2 {
		return check2(body)
	}
	parse, ok := parsers[v]
	if !ok {
		return nil, fmt.Errorf("Ignition spec version %s is not served: use one of %s", v, list(All))
	}
	rpt, err := parse(body)
	return findings(rpt, err)
}

// check2 does what the 2.2 parser does, less the line numbers: it finds those by reading the whole document again for each
// value, and a config of 200 KB would take seconds.
func check2(body []byte) (warnings []string, err error) {
	var cfg v2_2.Config
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&cfg); err != nil {
		return nil, invalid(nil, err)
	}
	if cfg.Ignition.Version != v2_2.MaxVersion.String() {
		return nil, invalid(nil, errors2.ErrUnknownVersion)
	}
	rpt := validate2.ValidateWithoutSource(reflect.ValueOf(cfg))
	if rpt.IsFatal() {
		err = errors2.ErrInvalid
	}
	return findings2(rpt, err)
}

var parsers = map[Version]func([]byte) (report.Report, error){
	V3_0: func(b []byte) (report.Report, error) { _, r, err := v3_0.Parse(b); return r, err },
	V3_1: func(b []byte) (report.Report, error) { _, r, err := v3_1.Parse(b); return r, err },
	V3_2: func(b []byte) (report.Report, error) { _, r, err := v3_2.Parse(b); return r, err },
	V3_3: func(b []byte) (report.Report, error) { _, r, err := v3_3.Parse(b); return r, err },
	V3_4: func(b []byte) (report.Report, error) { _, r, err := v3_4.Parse(b); return r, err },
	V3_5: func(b []byte) (report.Report, error) { _, r, err := v3_5.Parse(b); return r, err },
	V3_6: func(b []byte) (report.Report, error) { _, r, err := v3_6.Parse(b); return r, err },
}

// findings puts a report into lines. Fatal entries become one error.
func findings(rpt report.Report, err error) ([]string, error) {
	var warnings, fatal []string
	for _, e := range rpt.Entries {
		path := strings.TrimPrefix(strings.TrimPrefix(e.Context.String(), "$"), ".")
		line := oneLine(e.Message)
		if path != "" {
			line = path + ": " + line
		}
		if e.Kind.IsFatal() {
			fatal = append(fatal, line)
		} else {
			warnings = append(warnings, line)
		}
	}
	return warnings, invalid(fatal, err)
}

func findings2(rpt report2.Report, err error) ([]string, error) {
	var warnings, fatal []string
	for _, e := range rpt.Entries { // Entry.Highlight quotes the config and is left alone
		line := oneLine(e.Message)
		if e.Kind == report2.EntryError {
			fatal = append(fatal, line)
		} else {
			warnings = append(warnings, line)
		}
	}
	return warnings, invalid(fatal, err)
}

// invalid makes one error of the parser's verdict and its fatal findings.
func invalid(fatal []string, err error) error {
	if err == nil {
		return nil
	}
	const most = 5
	if more := len(fatal) - most; more > 0 {
		fatal = append(fatal[:most], fmt.Sprintf("and %d more", more))
	}
	if len(fatal) == 0 {
		return fmt.Errorf("Ignition says: %s", oneLine(err.Error()))
	}
	return fmt.Errorf("Ignition says: %s", strings.Join(fatal, "; "))
}

// oneLine makes a message fit for one line of a log, in words for people, and cuts what a parser quotes from a data URL.
func oneLine(message string) string {
	message = wording.JSON(message)
	if i := strings.Index(message, "expected base64, got "); i >= 0 {
		message = message[:i] + "expected base64"
	}
	return strings.Join(strings.FieldsFunc(message, func(r rune) bool { return r < ' ' || r == 0x7f }), "; ")
}
