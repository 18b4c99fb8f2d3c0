// SPDX-License-Identifier: Apache-2.0

package specver_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcsnap/mcsnap/mcs/specver"
)

// config is a 3.6 document with one section of interest.
func config(section string) []byte {
	return fmt.Appendf(nil, `{"ignition":{"version":"3.6.0"}%s}`, section)
}

// Each feature, the field that names it in a refusal, and the version that brought it: served from there on, refused
// below with the field named (field case 34 for kernel arguments).
func TestDownRefusesWhatAVersionLacks(t *testing.T) {
	const luks = `,"storage":{"luks":[{"name":"d","device":"/dev/d"%s}]}`
	tests := []struct {
		field, section string
		since          specver.Version
	}{
		{"storage.files.0.mode", `,"storage":{"files":[{"path":"/a","mode":2541,"contents":{"source":"data:,x"}}]}`, specver.V3_6},
		{"storage.directories.0.mode", `,"storage":{"directories":[{"path":"/a","mode":1023}]}`, specver.V3_6},
		{"storage.luks.0.clevis.custom.pin", fmt.Sprintf(luks, `,"clevis":{"custom":{"pin":"mine","config":"{}"}}`), specver.V3_6},
		{"storage.luks.0.cex", fmt.Sprintf(luks, `,"cex":{"enabled":true}`), specver.V3_5},
		{"storage.luks.0.discard", fmt.Sprintf(luks, `,"discard":true`), specver.V3_4},
		{"storage.luks.0.openOptions", fmt.Sprintf(luks, `,"openOptions":["--x"]`), specver.V3_4},
		{"storage.luks.0.clevis.tang.0.advertisement", fmt.Sprintf(luks, `,"clevis":{"tang":[{"url":"http://t","thumbprint":"x","advertisement":"{\"payload\":1}"}]}`), specver.V3_4},
		{"storage.files.0.contents.source", `,"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"arn:aws:s3:::bucket/key"}}]}`, specver.V3_4},
		{"ignition.config.merge.0.source", `,"ignition":{"version":"3.6.0","config":{"merge":[{"source":"arn:aws:s3:::bucket/key"}]}}`, specver.V3_4},
		{"kernelArguments.shouldExist", `,"kernelArguments":{"shouldExist":["a"]}`, specver.V3_3},
		{"kernelArguments.shouldNotExist", `,"kernelArguments":{"shouldNotExist":["a"]}`, specver.V3_3},
		{"storage.filesystems.0.format", `,"storage":{"filesystems":[{"device":"/dev/d","format":"none","wipeFilesystem":true}]}`, specver.V3_3},
		{"storage.luks", fmt.Sprintf(luks, ""), specver.V3_2},
		{"passwd.users.0.shouldExist", `,"passwd":{"users":[{"name":"u","shouldExist":false}]}`, specver.V3_2},
		{"passwd.groups.0.shouldExist", `,"passwd":{"groups":[{"name":"g","shouldExist":false}]}`, specver.V3_2},
		{"storage.disks.0.partitions.0.resize", `,"storage":{"disks":[{"device":"/dev/d","partitions":[{"number":1,"sizeMiB":9,"resize":true}]}]}`, specver.V3_2},
		{"storage.files.0.append.0.source", `,"storage":{"files":[{"path":"/a","mode":420,"append":[{"source":"gs://bucket/key"}]}]}`, specver.V3_2},
		{"ignition.proxy", `,"ignition":{"version":"3.6.0","proxy":{"httpProxy":"http://p"}}`, specver.V3_1},
		{"storage.files.0.contents.httpHeaders", `,"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"https://h/","httpHeaders":[{"name":"A","value":"b"}]}}]}`, specver.V3_1},
		{"ignition.config.replace.httpHeaders", `,"ignition":{"version":"3.6.0","config":{"replace":{"source":"https://h/","httpHeaders":[{"name":"A","value":"b"}]}}}`, specver.V3_1},
		{"ignition.config.merge.0.compression", `,"ignition":{"version":"3.6.0","config":{"merge":[{"source":"https://h/","compression":"gzip"}]}}`, specver.V3_1},
		{"ignition.security.tls.certificateAuthorities.0.compression", `,"ignition":{"version":"3.6.0","security":{"tls":{"certificateAuthorities":[{"source":"https://h/","compression":"gzip"}]}}}`, specver.V3_1},
		{"storage.files.0.contents.compression", `,"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"data:;base64,eA==","compression":"gzip"}}]}`, specver.V3_1},
		{"storage.files.0.contents.verification.hash", `,"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"https://h/","verification":{"hash":"sha256-` + strings.Repeat("0", 64) + `"}}}]}`, specver.V3_1},
		{"storage.filesystems.0.mountOptions", `,"storage":{"filesystems":[{"device":"/dev/d","format":"xfs","path":"/d","mountOptions":["ro"]}]}`, specver.V3_1},
		{"storage.disks.0.partitions.0.sizeMiB", `,"storage":{"disks":[{"device":"/dev/d","partitions":[{"number":1,"sizeMiB":9}]}]}`, specver.V3_0},
		{"storage.disks.0.partitions.0.startMiB", `,"storage":{"disks":[{"device":"/dev/d","partitions":[{"number":1,"startMiB":9}]}]}`, specver.V3_0},
		{"storage.disks.0.partitions.0.wipePartitionEntry", `,"storage":{"disks":[{"device":"/dev/d","partitions":[{"number":1,"wipePartitionEntry":true}]}]}`, specver.V3_0},
		{"storage.disks.0.partitions.0.shouldExist", `,"storage":{"disks":[{"device":"/dev/d","partitions":[{"number":1,"shouldExist":false}]}]}`, specver.V3_0},
		{"storage.files.0.mode", `,"storage":{"files":[{"path":"/a","append":[{"source":"data:,x"}]}]}`, specver.V3_0},
		{"storage.directories.0.mode", `,"storage":{"directories":[{"path":"/a"}]}`, specver.V3_0},
		{"storage.directories.0.mode", `,"storage":{"directories":[{"path":"/var/a/private","mode":448}]}`, specver.V3_0},
		{"storage.filesystems.0.path", `,"storage":{"filesystems":[{"device":"/dev/d","format":"xfs","path":"/"}]}`, specver.V3_0},
		{"storage.links.0.path", `,"storage":{"filesystems":[{"device":"/dev/d","format":"xfs","path":"/var"}],"links":[{"path":"/variable","target":"/x"}]}`, specver.V3_0},
	}
	for _, tt := range tests {
		raw := config(tt.section)
		if bytes.Contains(raw[1:], []byte(`"ignition":{"version":"3.6.0","`)) { // the section brings its own
			raw = bytes.Replace(raw, []byte(`"ignition":{"version":"3.6.0"},`), nil, 1)
		}
		cfg, _, err := specver.Up(raw)
		if err != nil {
			t.Errorf("%s: the test's config is not valid: %v", tt.field, err)
			continue
		}
		for _, v := range specver.All {
			body, err := specver.Down(cfg, v)
			var ie *specver.InexpressibleError
			switch {
			case v.Less(tt.since):
				// A feature may bring another, older one with it; the newest missing one is named.
				if !errors.As(err, &ie) || ie.Field != tt.field || ie.Version != v || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s in %s: got %v, want an InexpressibleError naming it", tt.field, v, err)
				}
			case errors.As(err, &ie):
				if ie.Field == tt.field {
					t.Errorf("%s in %s: refused, but this version has it: %v", tt.field, v, err)
				}
			case err != nil:
				t.Errorf("%s in %s: %v", tt.field, v, err)
			default:
				if _, err := specver.Check(body, v); err != nil {
					t.Errorf("%s in %s: %v", tt.field, v, err)
				}
			}
		}
	}
}

// What ign-converter alone gets wrong and what Ignition 0.x needs.
func TestDownKeepsWhatItCanSay(t *testing.T) {
	tests := []struct {
		name, section string
		to            specver.Version
		want          string // the document less its ignition section
	}{
		{"tang advertisements in 3.4", `,"storage":{"luks":[{"name":"d","device":"/dev/d","clevis":{"tang":[{"url":"http://t","thumbprint":"x","advertisement":"{}"}]}}]}`, specver.V3_4,
			`"storage":{"luks":[{"clevis":{"tang":[{"advertisement":"{}","thumbprint":"x","url":"http://t"}]},"device":"/dev/d","name":"d"}]}`},
		{"a file without contents in 2.2", `,"storage":{"files":[{"path":"/a","mode":384}]}`, specver.V2_2,
			`"storage":{"files":[{"append":true,"contents":{"source":"data:,"},"filesystem":"root","mode":384,"path":"/a"}]}`},
		{"contents and an append in 2.2", `,"storage":{"files":[{"path":"/a","overwrite":true,"contents":{"source":"data:,a"},"append":[{"source":"data:,b"}]}]}`, specver.V2_2,
			`"storage":{"files":[{"contents":{"source":"data:,a"},"filesystem":"root","mode":420,"overwrite":true,"path":"/a"},` +
				`{"append":true,"contents":{"source":"data:,b"},"filesystem":"root","mode":420,"path":"/a"}]}`},
		{"an append to what exists in 2.2", `,"storage":{"files":[{"path":"/etc/hosts","mode":420,"append":[{"source":"data:,b"}]}]}`, specver.V2_2,
			`"storage":{"files":[{"append":true,"contents":{"source":"data:,b"},"filesystem":"root","mode":420,"path":"/etc/hosts"}]}`},
		{"settings that say nothing", `,"storage":{"files":[{"path":"/a","mode":420,"contents":{"source":"data:,a","compression":"","httpHeaders":[]}}]}`, specver.V2_2,
			`"storage":{"files":[{"contents":{"source":"data:,a"},"filesystem":"root","mode":420,"overwrite":false,"path":"/a"}]}`},
		{"private directories whose parents are known, in 2.2", `,"storage":{"directories":[{"path":"/var/lib/a","mode":448},{"path":"/var/lib/a/b","mode":448},{"path":"/x/y/z","mode":493}]}`, specver.V2_2,
			`"storage":{"directories":[{"filesystem":"root","mode":448,"path":"/var/lib/a"},{"filesystem":"root","mode":448,"path":"/var/lib/a/b"},{"filesystem":"root","mode":493,"path":"/x/y/z"}]}`},
		{"a hard link to a file further down, in 2.2", `,"storage":{"files":[{"path":"/a/b","mode":420}],"links":[{"path":"/c","target":"/a/b","hard":true}]}`, specver.V2_2,
			`"storage":{"files":[{"append":true,"contents":{"source":"data:,"},"filesystem":"root","mode":420,"path":"/a/b"}],"links":[{"filesystem":"root","hard":true,"path":"/c","target":"/a/b"}]}`},
		{"a hard link further down, in 3.0", `,"storage":{"files":[{"path":"/a","mode":420}],"links":[{"path":"/c/d","target":"/a","hard":true}]}`, specver.V3_0,
			`"storage":{"files":[{"mode":420,"path":"/a"}],"links":[{"hard":true,"path":"/c/d","target":"/a"}]}`},
		{"an empty drop-in in 3.0", `,"systemd":{"units":[{"name":"a.service","dropins":[{"name":"b.conf","contents":""}]}]}`, specver.V3_0,
			`"storage":{"files":[{"contents":{"source":"data:,"},"mode":420,"overwrite":true,"path":"/etc/systemd/system/a.service.d/b.conf"}]},"systemd":{"units":[{"name":"a.service"}]}`},
		{"an empty drop-in in 2.2", `,"systemd":{"units":[{"name":"a.service","dropins":[{"name":"b.conf","contents":""},{"name":"c.conf"}]}]}`, specver.V2_2,
			`"storage":{"files":[{"contents":{"source":"data:,"},"filesystem":"root","mode":420,"overwrite":true,"path":"/etc/systemd/system/a.service.d/b.conf"}]},` +
				`"systemd":{"units":[{"dropins":[{"name":"c.conf"}],"name":"a.service"}]}`},
		{"signs are not escaped for HTML", `,"systemd":{"units":[{"name":"a.service","contents":"[Service]\nExecStart=/bin/sh -c 'a && b > c'\n"}]}`, specver.V3_0,
			`"systemd":{"units":[{"contents":"[Service]\nExecStart=/bin/sh -c 'a && b > c'\n","name":"a.service"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, _, err := specver.Up(config(tt.section))
			if err != nil {
				t.Fatal(err)
			}
			before, err := specver.Marshal(cfg)
			if err != nil {
				t.Fatal(err)
			}
			body, err := specver.Down(cfg, tt.to)
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(`{"ignition":{"version":"%s"},%s}`, tt.to, tt.want)
			if diff := cmp.Diff(want, string(body)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if warnings, err := specver.Check(body, tt.to); err != nil || len(warnings) > 0 {
				t.Errorf("the parser of %s says %v, %v", tt.to, warnings, err)
			}
			if after, _ := specver.Marshal(cfg); !bytes.Equal(before, after) {
				t.Errorf("Down changed its argument")
			}
		})
	}
}

// Ignition 2.0 to 2.2, which ask for 3.0, stop at a hard link to a file that they make later; all others do not.
func TestDownRefusesEarlyHardLinks(t *testing.T) {
	cfg, _, err := specver.Up(config(`,"storage":{"files":[{"path":"/a/b","mode":420}],"links":[{"path":"/c","target":"/a/b","hard":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range specver.All {
		_, err := specver.Down(cfg, v)
		var ie *specver.InexpressibleError
		if refused := errors.As(err, &ie) && ie.Field == "storage.links.0.target"; refused != (v == specver.V3_0) {
			t.Errorf("%s: %v", v, err)
		}
	}
}

// The parsers' own words, in one line, without what stands in the config.
func TestCheckNamesFieldsAndQuotesNothing(t *testing.T) {
	const secret = "S3CR3T"
	for name, doc := range map[string]string{
		"cut short":         `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/` + secret,
		"wrong type":        `{"ignition":{"version":"3.5.0"},"storage":{"files":"` + secret + `"}}`,
		"data URL":          `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:;` + secret + `,x"}}]}}`,
		"data URL escapes":  `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,` + secret + `%zz"}}]}}`,
		"scheme":            `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a","contents":{"source":"` + secret + `"}}]}}`,
		"unit":              `{"ignition":{"version":"3.5.0"},"systemd":{"units":[{"name":"a.service","contents":"[` + secret + `"}]}}`,
		"two for one path":  `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"/a"},{"path":"/a","contents":{"source":"data:,` + secret + `"}}]}}`,
		"relative path":     `{"ignition":{"version":"3.5.0"},"storage":{"files":[{"path":"a","contents":{"source":"data:,` + secret + `"}}]}}`,
		"empty":             ``,
		"no version":        `{"ignition":{}}`,
		"unknown version":   `{"ignition":{"version":"3.9.0"}}`,
		"another major":     `{"ignition":{"version":"2.2.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:,` + secret + `"}}]}}`,
		"password in array": `{"ignition":{"version":"3.5.0"},"passwd":["` + secret + `"]}`,
	} {
		_, _, err := specver.Up([]byte(doc))
		switch {
		case err == nil:
			t.Errorf("%s: no error", name)
		case strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: quotes the config or has several lines: %q", name, err)
		default:
			t.Logf("%s: %v", name, err)
		}
	}
	two := `{"ignition":{"version":"2.2.0"},"systemd":{"units":[{"name":"a.service","contents":"[` + secret + `"}]}}`
	if _, err := specver.Check([]byte(two), specver.V2_2); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("2.2: %v", err)
	}
}

func FuzzDown(f *testing.F) {
	f.Add([]byte(`{"ignition":{"version":"3.6.0"},"storage":{"raid":[{"name":"r","level":"raid1","devices":["/dev/a"]}],"links":[{"path":"/l","target":"/t"}]}}`))
	f.Add([]byte(`{"ignition":{"version":"3.3.0"},"storage":{"luks":[{"name":"d","device":"/dev/d","clevis":{"tpm2":true}}]},"passwd":{"users":[{"name":"u"}]}}`))
	f.Add([]byte(`{"ignition":{"version":"3.0.0","security":{"tls":{"certificateAuthorities":[{"source":"data:,x"}]}}},"storage":{"filesystems":[{"device":"/dev/d","format":"xfs","path":"/d"}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		cfg, _, err := specver.Up(raw)
		if err != nil {
			return
		}
		for _, v := range specver.All {
			body, err := specver.Down(cfg, v)
			var ie *specver.InexpressibleError
			switch {
			case errors.As(err, &ie) && ie.Field != "":
			case err != nil:
				t.Errorf("%s: %v", v, err)
			default:
				if _, err := specver.Check(body, v); err != nil {
					t.Errorf("%s: %v", v, err)
				}
			}
		}
	})
}
