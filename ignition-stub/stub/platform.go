// SPDX-License-Identifier: Apache-2.0

package stub

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Limit is what a platform takes for user-data. Where the numbers come from stands in docs/stubs.md.
type Limit struct {
	Bytes  int  // 0: no limit that a stub could meet
	Base64 bool // counted after encoding in base64
}

// Platforms are those whose limit is known, by Ignition's names for them.
var Platforms = map[string]Limit{
	"aws":        {16384, false},
	"azure":      {65535, false},
	"gcp":        {262144, false},
	"openstack":  {65535, true},
	"vmware":     {65536, true},
	"virtualbox": {1024, false},
	"metal":      {0, false},
	"qemu":       {0, false},
}

// PlatformNames are the names in [Platforms], sorted.
func PlatformNames() []string { return slices.Sorted(maps.Keys(Platforms)) }

// TooLargeError says that a stub is more than its platform takes.
type TooLargeError struct {
	Platform     string
	Size, Limit  int
	Largest      Part
	CountsBase64 bool
}

func (e *TooLargeError) Error() string {
	how := ""
	if e.CountsBase64 {
		how = " in base64"
	}
	return fmt.Sprintf("platform %s: the stub has %d bytes%s and %d is the limit; its largest part is %s with %d bytes, move that into the config the server sends",
		e.Platform, e.Size, how, e.Limit, e.Largest.Name, e.Largest.Bytes)
}

// Fits checks user-data of that many bytes against a platform's limit. used is the size as the platform counts it.
func (l Limit) Fits(size int) (used int, ok bool) {
	if l.Base64 {
		size = base64.StdEncoding.EncodedLen(size)
	}
	return size, l.Bytes == 0 || size <= l.Bytes
}

func (s *Stub) fits(platform string) error {
	if platform == "" {
		return nil
	}
	limit, known := Platforms[platform]
	if !known {
		return wrong("platform", "%.30q is not known; want one of %s, or none for no limit", platform, strings.Join(PlatformNames(), ", "))
	}
	used, ok := limit.Fits(len(s.JSON))
	if ok {
		return nil
	}
	return &TooLargeError{Platform: platform, Size: used, Limit: limit.Bytes, Largest: s.Parts[0], CountsBase64: limit.Base64}
}

// weigh lists the parts of a stub by size.
func (s *Stub) weigh(d document) {
	add := func(name string, value any) { s.Parts = append(s.Parts, Part{name, len(encode(value))}) }
	references := append(slices.Clone(d.Ignition.Config.Merge), d.Ignition.Config.Append...)
	for i, r := range references {
		if i == 0 {
			r.name = "the URL"
			if r.HTTPHeaders != nil {
				r.name = "the URL and its token"
			}
		}
		add(r.name, r)
	}
	if d.Ignition.Security != nil {
		for _, ca := range d.Ignition.Security.TLS.CertificateAuthorities {
			add(ca.name, ca)
		}
	}
	if d.Storage != nil {
		add("the token's file", d.Storage)
	}
	slices.SortStableFunc(s.Parts, func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) })
}
