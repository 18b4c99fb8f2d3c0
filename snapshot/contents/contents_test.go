// SPDX-License-Identifier: Apache-2.0

package contents_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/mcsnap/mcsnap/snapshot/contents"
)

func TestDecode(t *testing.T) {
	hello := []byte("hello é\n")
	packed := contents.Base64(contents.Compress(hello))
	for name, tc := range map[string]struct {
		source, compression string
		want                []byte
		says                string // the error's text where there is one
	}{
		"escaped text":             {"data:,hello%20%C3%A9%0A", "", hello, ""},
		"a plus is a plus":         {"data:,a+b", "", []byte("a+b"), ""},
		"with a media type":        {"data:text/plain;charset=utf-8,hello%20%C3%A9%0A", "", hello, ""},
		"base64":                   {contents.Base64(hello), "", hello, ""},
		"gzip":                     {packed, "gzip", hello, ""},
		"an empty file":            {"", "", nil, ""},
		"an empty data URL":        {"data:,", "", []byte{}, ""},
		"gzip that nobody asks of": {packed, "", contents.Compress(hello), ""},
		"remote":                   {"https://example.org/x", "", nil, "not a data URL"},
		"malformed":                {"data:;base64,S3CR3T***", "", nil, "malformed"},
		"not gzip":                 {"data:,S3CR3T", "gzip", nil, "inflating"},
		"cut gzip":                 {contents.Base64(contents.Compress(hello)[:15]), "gzip", nil, "inflating"},
		"another compression":      {"data:,x", "xz", nil, `only "gzip"`},
		"longer than the limit":    {"data:," + strings.Repeat("a", 101), "", nil, "limit"},
		"a bomb":                   {contents.Base64(contents.Compress(make([]byte, 1<<20))), "gzip", nil, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := contents.Decode(tc.source, tc.compression, 100)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "S3CR3T") {
					t.Fatalf("Decode = %v, want %q in the text and no contents", err, tc.says)
				}
				return
			}
			if err != nil || !bytes.Equal(got, tc.want) {
				t.Fatalf("Decode = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
	if _, err := contents.Decode("https://example.org/x", "", 1); !errors.Is(err, contents.ErrRemote) {
		t.Errorf("remote: %v, want ErrRemote", err)
	}
}

// Field case 66: a bomb costs no more than its limit.
func TestInflateStopsAtTheLimit(t *testing.T) {
	bomb := contents.Compress(make([]byte, 64<<20))
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := contents.Inflate(bomb, 1024); !errors.Is(err, contents.ErrTooLarge) {
			t.Errorf("Inflate = %v, want ErrTooLarge", err)
		}
	})
	if allocated > 100 {
		t.Errorf("%v allocations: it went on after the limit", allocated)
	}
}

// Compressed contents depend on the data alone: servers agree, and a body composed twice is the same body.
func TestCompressIsDeterministic(t *testing.T) {
	data := bytes.Repeat([]byte("the same\n"), 1000)
	first := contents.Compress(data)
	for range 10 {
		if !bytes.Equal(contents.Compress(data), first) {
			t.Fatal("other bytes for the same data")
		}
	}
	if back, err := contents.Inflate(first, contents.MaxInflated); err != nil || !bytes.Equal(back, data) {
		t.Fatalf("inflates to something else: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("data:,a%20b", "")
	f.Add(contents.Base64(contents.Compress([]byte("x"))), "gzip")
	f.Fuzz(func(t *testing.T, source, compression string) {
		data, err := contents.Decode(source, compression, 1<<20)
		if err != nil {
			return
		}
		if again, err := contents.Decode(contents.Base64(data), "", 1<<20); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("encoded again, decodes to other bytes: %v", err)
		}
	})
}
