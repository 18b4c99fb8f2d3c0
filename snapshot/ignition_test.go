// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

var specVersions = []string{"2.2.0", "3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0"}

func TestEmbedAndExtract(t *testing.T) {
	s := sealed(t)
	for _, version := range specVersions {
		t.Run(version, func(t *testing.T) {
			config := fmt.Sprintf(`{"ignition":{"version":%q},"future":{"kept":1},"storage":{"disks":[],"files":[{"path":"/etc/a"}]}}`, version)
			embedded, err := snapshot.Embed([]byte(config), s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := snapshot.Extract(embedded)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), s.Bytes()) {
				t.Error("another snapshot comes out than went in")
			}
			for _, kept := range []string{`"kept":1`, `"/etc/a"`, `"disks":[]`} {
				if !bytes.Contains(embedded, []byte(kept)) {
					t.Errorf("%s is lost", kept)
				}
			}
			again, err := snapshot.Embed(embedded, s)
			if err != nil || !bytes.Equal(again, embedded) {
				t.Errorf("embedding twice is not embedding once: %v", err)
			}
		})
	}
}

// Field case 72: gzip from 3.1 on, where Ignition can read it from a data URL; below, plain base64 with a hash that
// those versions know (sha512). What lands on disk is the same.
func TestEncodingPerVersion(t *testing.T) {
	for _, version := range specVersions {
		embedded, err := snapshot.Embed(fmt.Appendf(nil, `{"ignition":{"version":%q}}`, version), sealed(t))
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Storage struct {
				Files []struct {
					Path, Filesystem string
					Mode             int
					Overwrite        bool
					Contents         struct {
						Source, Compression string
						Verification        struct{ Hash string }
					}
				}
			}
		}
		if err := json.Unmarshal(embedded, &config); err != nil {
			t.Fatal(err)
		}
		file := config.Storage.Files[0]
		if file.Path != snapshot.Path || file.Mode != 0o600 || !file.Overwrite {
			t.Errorf("%s: path %s, mode %o, overwrite %v", version, file.Path, file.Mode, file.Overwrite)
		}
		old := version == "2.2.0" || version == "3.0.0"
		if (file.Contents.Compression == "") != old || (file.Filesystem == "root") != (version == "2.2.0") {
			t.Errorf("%s: compression %q, filesystem %q", version, file.Contents.Compression, file.Filesystem)
		}
		onDisk, err := contents.Decode(file.Contents.Source, file.Contents.Compression, contents.MaxInflated)
		if err != nil || !bytes.Equal(onDisk, sealed(t).Bytes()) {
			t.Errorf("%s: other bytes on disk (%v)", version, err)
		}
		if file.Contents.Verification.Hash != contents.Verification(onDisk) {
			t.Errorf("%s: hash %s", version, file.Contents.Verification.Hash)
		}
	}
}

// A path that is already taken is never written twice, however it is spelled.
func TestEmbedWhereThePathIsTaken(t *testing.T) {
	for name, tc := range map[string]struct {
		storage string
		refused string // "" where the file is replaced
	}{
		"by a file":              {`{"files":[{"path":"/etc/mcd-snapshot.json"},{"path":"/etc/x"}]}`, ""},
		"by a file, in disguise": {`{"files":[{"path":"/etc/../etc//mcd-snapshot.json"},{"path":"/etc/x"}]}`, ""},
		"by two":                 {`{"files":[{"path":"/etc/mcd-snapshot.json"},{"path":"/etc/./mcd-snapshot.json","append":true},{"path":"/etc/x"}]}`, ""},
		"by a directory":         {`{"directories":[{"path":"/etc/mcd-snapshot.json/"}]}`, "directory"},
		"by a link":              {`{"links":[{"path":"/etc/../etc/mcd-snapshot.json","target":"/tmp/x"}]}`, "link"},
		"below a link":           {`{"links":[{"path":"/etc","target":"/tmp"}]}`, "link"},
	} {
		t.Run(name, func(t *testing.T) {
			embedded, err := snapshot.Embed([]byte(`{"ignition":{"version":"3.4.0"},"storage":`+tc.storage+`}`), sealed(t))
			if tc.refused != "" {
				if !is[*snapshot.PathTakenError](err) || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("Embed = %v, want a PathTakenError that says %s", err, tc.refused)
				}
				return
			}
			if err != nil || strings.Count(string(embedded), "mcd-snapshot.json") != 1 || !strings.Contains(string(embedded), "/etc/x") {
				t.Fatalf("Embed = %v, want one entry for the path and the other file kept", err)
			}
		})
	}
}

func TestExtractRefuses(t *testing.T) {
	bomb := contents.Base64(contents.Compress(make([]byte, 256<<20)))
	with := func(entry string) string {
		return `{"ignition":{"version":"3.4.0"},"storage":{"files":[` + entry + `]}}`
	}
	for name, tc := range map[string]struct {
		config string
		kind   func(error) bool
		says   string
	}{
		"not JSON":          {"x", is[*snapshot.NotJSONError], ""},
		"not Ignition":      {"{}", is[*snapshot.NoSnapshotError], "/ignition/version"},
		"a future version":  {`{"ignition":{"version":"4.0.0"}}`, is[*snapshot.NoSnapshotError], "/ignition/version"},
		"no snapshot":       {with(`{"path":"/etc/x"}`), is[*snapshot.NoSnapshotError], snapshot.Path},
		"a remote one":      {with(`{"path":"/etc/mcd-snapshot.json","contents":{"source":"https://example.org/x"}}`), is[*snapshot.NoSnapshotError], "not a data URL"},
		"a malformed URL":   {with(`{"path":"/etc/mcd-snapshot.json","contents":{"source":"data:;base64,***"}}`), is[*snapshot.NoSnapshotError], "malformed"},
		"unknown packing":   {with(`{"path":"/etc/mcd-snapshot.json","contents":{"source":"data:,x","compression":"xz"}}`), is[*snapshot.NoSnapshotError], "xz"},
		"broken gzip":       {with(`{"path":"/etc/mcd-snapshot.json","contents":{"source":"data:,x","compression":"gzip"}}`), is[*snapshot.NoSnapshotError], "inflating"},
		"a bomb":            {with(`{"path":"/etc/mcd-snapshot.json","contents":{"source":"` + bomb + `","compression":"gzip"}}`), is[*snapshot.TooLargeError], "8388608"},
		"an empty one":      {with(`{"path":"/etc/mcd-snapshot.json"}`), is[*snapshot.NotJSONError], "empty"},
		"files not a list":  {`{"ignition":{"version":"3.4.0"},"storage":{"files":{}}}`, is[*snapshot.NoSnapshotError], "/storage/files"},
		"storage is a text": {`{"ignition":{"version":"3.4.0"},"storage":"x"}`, is[*snapshot.NoSnapshotError], "/storage"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := snapshot.Extract([]byte(tc.config)); err == nil || !tc.kind(err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Extract = %T %v, want another type or %q in the text", err, err, tc.says)
			}
		})
	}
}
