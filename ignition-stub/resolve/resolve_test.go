// SPDX-License-Identifier: Apache-2.0

package resolve_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/e2e/lab"
	"github.com/mcsnap/mcsnap/ignition-stub/cache"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
	"github.com/mcsnap/mcsnap/ignition-stub/resolve"
	"github.com/mcsnap/mcsnap/snapshot/contents"
)

// site is a TLS server with pages, under a CA of its own.
type site struct {
	*httptest.Server
	ca    []byte
	pages map[string]string // "SELF" in a page is the server's URL
	token string            // wanted for paths under /secret
}

func newSite(t *testing.T, pages map[string]string) *site {
	t.Helper()
	ca := fetchtest.NewCA(t, "site")
	s := &site{ca: ca.PEM, pages: pages, token: fetchtest.Token}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Issue(t)}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	page, ok := s.pages[r.URL.Path]
	switch {
	case strings.HasPrefix(r.URL.Path, "/secret") && r.Header.Get("Authorization") != "Bearer "+s.token:
		w.WriteHeader(http.StatusForbidden)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		io.WriteString(w, strings.ReplaceAll(page, "SELF", s.URL))
	}
}

// stub is a stub of spec 3.4 that trusts the site; merge is its list of references.
func (s *site) stub(merge string) []byte {
	return fmt.Appendf(nil, `{"ignition":{"version":"3.4.0","config":{"merge":[%s]},"timeouts":{"httpTotal":20},
		"security":{"tls":{"certificateAuthorities":[{"source":"data:;base64,%s"}]}}}}`,
		strings.ReplaceAll(merge, "SELF", s.URL), base64.StdEncoding.EncodeToString(s.ca))
}

func quick() fetch.Options {
	return fetch.Options{Deadline: 5 * time.Second, Tries: 2, BackoffMin: time.Millisecond, BackoffMax: 5 * time.Millisecond}
}

const big = "a file of some length, a file of some length, a file of some length, a file of some length, a file of some length"

// pages hold everything that a config can name: nested merges, a replacement, gzip, hashes, tokens, remote files.
var pages = map[string]string{
	"/secret/worker": `{"ignition":{"version":"3.2.0","config":{"merge":[{"source":"SELF/base"},{"source":"SELF/old"}]}},
		"storage":{"files":[{"path":"/etc/motd","mode":384,"contents":{"source":"data:,worker"}}]},
		"systemd":{"units":[{"name":"a.service","enabled":true,"contents":"[Service]\nExecStart=true\n[Install]\nWantedBy=a.target\n"}]}}`,
	"/old": `{"ignition":{"version":"3.0.0","config":{"replace":{"source":"SELF/new"}}},"storage":{"files":[{"path":"/etc/never","contents":{"source":"data:,x"}}]}}`,
	"/new": `{"ignition":{"version":"3.1.0"},"storage":{"files":[
		{"path":"/etc/big","mode":420,"contents":{"source":"SELF/big","verification":{"hash":"BIGHASH"}}},
		{"path":"/etc/packed","mode":420,"contents":{"source":"SELF/big.gz","compression":"gzip"}},
		{"path":"/etc/empty","mode":420,"contents":{"source":"SELF/empty"}},
		{"path":"/etc/secret","mode":384,"contents":{"source":"SELF/secret/file","httpHeaders":[{"name":"Authorization","value":"Bearer ` + fetchtest.Token + `"}]}},
		{"path":"/etc/joined","mode":420,"contents":{"source":"data:,one%20"},"append":[{"source":"SELF/two"}]}]}}`,
	"/big": big, "/big.gz": string(contents.Compress([]byte(big))), "/empty": "", "/two": "two", "/secret/file": "hush",
}

func fullSite(t *testing.T) *site {
	all := map[string]string{}
	for path, page := range pages {
		all[path] = strings.ReplaceAll(page, "BIGHASH", fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(big))))
	}
	all["/base"] = `{"ignition":{"version":"3.4.0"},"kernelArguments":{"shouldExist":["quiet"]},"storage":{"files":[
		{"path":"/etc/motd","mode":420,"contents":{"source":"data:,base"}},{"path":"/etc/base","mode":420,"contents":{"source":"data:,base"}}]}}`
	return newSite(t, all)
}

const whole = `{"source":"SELF/secret/worker","httpHeaders":[{"name":"Authorization","value":"Bearer ` + fetchtest.Token + `"}]}`

// The real Ignition, given the stub, and given what was resolved and inlined from it when the server is gone, writes the
// same root. Field case 113.
func TestSameRootAsTheRealIgnition(t *testing.T) {
	s := fullSite(t)
	online := filepath.Join(t.TempDir(), "root")
	booted := lab.ApplyIgnition(t, s.stub(whole), online)
	result, err := resolve.Resolve(t.Context(), s.stub(whole), resolve.Options{Fetch: quick(), Inline: true})
	if err != nil {
		t.Fatal(err)
	}
	if result.Version != "3.4.0" || bytes.Contains(result.Config, []byte(s.URL)) || bytes.Contains(result.Config, []byte(fetchtest.Token)) {
		t.Errorf("version %s; a URL or a token is left in it:\n%s", result.Version, result.Config)
	}
	s.Close()
	offline := filepath.Join(t.TempDir(), "root")
	alone := lab.ApplyIgnition(t, result.Config, offline)
	if want, got := list(t, online), list(t, offline); got != want || !strings.Contains(got, "/etc/joined -rw-r--r-- one two") {
		t.Errorf("another root:\n%s\nwant\n%s", got, want)
	}
	if fmt.Sprint(booted.KernelArgs) != fmt.Sprint(alone.KernelArgs) {
		t.Errorf("kernel arguments %v, want %v", alone.KernelArgs, booted.KernelArgs)
	}
	again, err := resolve.Resolve(t.Context(), result.Config, resolve.Options{Fetch: quick(), Inline: true})
	if err != nil || !bytes.Equal(again.Config, result.Config) || len(again.Sources) != 0 {
		t.Errorf("resolved again, it is something else (%v)", err)
	}
}

func list(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(name, "ignition-result.json") {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		fmt.Fprintf(&all, "%s %s %s\n", strings.TrimPrefix(name, root), info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestWhatIsRefused(t *testing.T) {
	bomb := contents.Compress(make([]byte, contents.MaxInflated+1))
	s := newSite(t, map[string]string{
		"/good": `{"ignition":{"version":"3.4.0"}}`, "/page": "<html>", "/two": `{"ignition":{"version":"2.2.0"}}`,
		"/me": `{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"SELF/me"}]}}}`, "/bomb": string(bomb), "/empty": "",
		"/late": `{"ignition":{"version":"3.9.0"}}`, "/cut.gz": string(contents.Compress([]byte(`{"ignition":{}}`))[:20]),
	})
	other := fmt.Sprintf("sha512-%x", sha512.Sum512(nil))
	for name, c := range map[string]struct {
		merge, says string
		is          func(error) bool
	}{
		"a wrong hash":           {`{"source":"SELF/good","verification":{"hash":"` + other + `"}}`, "digest mismatch", isA[*fetch.DigestError]},
		"a wrong hash of data":   {`{"source":"data:,x","verification":{"hash":"` + other + `"}}`, "digest mismatch", isA[*fetch.DigestError]},
		"a page":                 {`{"source":"SELF/page"}`, "not an Ignition config", isA[*fetch.GaveUpError]},
		"nothing":                {`{"source":"SELF/empty"}`, "an empty answer", isA[*fetch.GaveUpError]},
		"spec 2.2":               {`{"source":"SELF/two"}`, "not resolved here", isA[*fetch.GaveUpError]},
		"a spec of the future":   {`{"source":"SELF/late"}`, "Ignition finds", isA[*fetch.GaveUpError]},
		"itself":                 {`{"source":"SELF/me"}`, "name each other", isA[*resolve.InputError]},
		"a bomb":                 {`{"source":"SELF/bomb","compression":"gzip"}`, "inflates to more", isA[*fetch.GaveUpError]},
		"gzip cut short":         {`{"source":"SELF/cut.gz","compression":"gzip"}`, "inflating", isA[*fetch.GaveUpError]},
		"a bomb of data":         {`{"source":"` + contents.Base64(bomb) + `","compression":"gzip"}`, "inflates to more", isA[*resolve.InputError]},
		"tftp":                   {`{"source":"tftp://h/x"}`, "not fetched here", isA[*resolve.InputError]},
		"what nobody has":        {`{"source":"SELF/no"}`, "404", isA[*fetch.GaveUpError]},
		"what another may see":   {`{"source":"SELF/secret/x"}`, "403", isA[*fetch.GaveUpError]},
		"a config of a bad kind": {`{"source":"data:,%7B%22ignition%22:%7B%22version%22:%223.4.0%22%7D,%22storage%22:%7B%22files%22:%5B%7B%22path%22:%22x%22%7D%5D%7D%7D"}`, "Ignition finds", isA[*resolve.InputError]},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := resolve.Resolve(t.Context(), s.stub(c.merge), resolve.Options{Fetch: quick()})
			if err == nil || !c.is(err) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %T %v, want one line that says %q", err, err, c.says)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	for _, stub := range []string{"", "[]", "{}", `{"ignition":{"version":"2.2.0"}}`, `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"x"}]}}`} {
		if _, err := resolve.Resolve(t.Context(), []byte(stub), resolve.Options{}); !isA[*resolve.InputError](err) {
			t.Errorf("stub %q: %v, want an InputError", stub, err)
		}
	}
}

// A replaced stub takes its CAs away: the config still arrives, but not the files it names. As in Ignition, where the
// fetch stage keeps the CAs it has, and the files stage starts from what was fetched. This is why a stub merges.
func TestReplacingLosesTheCAs(t *testing.T) {
	s := fullSite(t)
	replaced := bytes.Replace(s.stub(`{"source":"SELF/old"}`), []byte(`"merge":[{"source":"`+s.URL+`/old"}]`), []byte(`"replace":{"source":"`+s.URL+`/old"}`), 1)
	if _, err := resolve.Resolve(t.Context(), replaced, resolve.Options{Fetch: quick()}); err != nil {
		t.Errorf("the config alone: %v", err)
	}
	_, err := resolve.Resolve(t.Context(), replaced, resolve.Options{Fetch: quick(), Inline: true})
	gaveUp, ok := errors.AsType[*fetch.GaveUpError](err)
	if !ok || gaveUp.Troubles[0].Kind != fetch.UnknownCA {
		t.Errorf("got %v, want an unknown CA: the replacement has none", err)
	}
}

func TestCacheHelpsWhenNobodyAnswers(t *testing.T) {
	s := fullSite(t)
	dir, err := cache.Open(filepath.Join(t.TempDir(), "cache"))
	if err != nil {
		t.Fatal(err)
	}
	o := resolve.Options{Fetch: quick(), Inline: true, Cache: dir}
	o.Fetch.Deadline = 300 * time.Millisecond
	first, err := resolve.Resolve(t.Context(), s.stub(whole), resolve.Options{Fetch: quick(), Inline: true, Cache: dir})
	if err != nil {
		t.Fatal(err)
	}
	page := s.pages["/two"]
	delete(s.pages, "/two")
	if _, err := resolve.Resolve(t.Context(), s.stub(whole), resolve.Options{Fetch: quick(), Inline: true, Cache: dir}); err == nil {
		t.Error("404 is an answer, and the cache gave another")
	}
	s.pages["/two"] = page
	s.Close()
	second, err := resolve.Resolve(t.Context(), s.stub(whole), o)
	if err != nil || !bytes.Equal(first.Config, second.Config) || !second.Sources[0].Cached {
		t.Errorf("without a server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := resolve.Resolve(ctx, s.stub(whole), o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzResolve(f *testing.F) {
	f.Add([]byte(`{"ignition":{"version":"3.4.0","config":{"merge":[{"source":"data:,%7B%22ignition%22:%7B%22version%22:%223.0.0%22%7D%7D"}]}}}`))
	f.Add([]byte(`{"ignition":{"version":"3.1.0","config":{"replace":{"source":"data:,x"}}}}`))
	f.Fuzz(func(t *testing.T, stub []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nothing of the network
		result, err := resolve.Resolve(ctx, stub, resolve.Options{Inline: true})
		if err != nil {
			return
		}
		again, err := resolve.Resolve(ctx, result.Config, resolve.Options{Inline: true})
		if err != nil || !bytes.Equal(again.Config, result.Config) {
			t.Fatalf("resolved again, it is something else: %v\n%s", err, result.Config)
		}
	})
}

func isA[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }
