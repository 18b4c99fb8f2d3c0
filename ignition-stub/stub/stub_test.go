// SPDX-License-Identifier: Apache-2.0

package stub_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch/fetchtest"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

const server = "https://api-int.example.com:22623"

func TestTarget(t *testing.T) {
	for name, c := range map[string]struct {
		options stub.Options
		want    string // the source, or what the error says
	}{
		"server and pool":       {stub.Options{URL: server, Pool: "worker"}, server + "/config/worker"},
		"with a slash":          {stub.Options{URL: server + "/", Pool: "worker"}, server + "/config/worker"},
		"whole":                 {stub.Options{URL: server + "/config/worker"}, server + "/config/worker"},
		"whole, and the pool":   {stub.Options{URL: server + "/config/worker", Pool: "worker"}, server + "/config/worker"},
		"gzip":                  {stub.Options{URL: server + "/config/worker", Gzip: true}, server + "/config/worker.gz"},
		"gzip, named":           {stub.Options{URL: server + "/config/worker.gz", Gzip: true}, server + "/config/worker.gz"},
		"somebody else's path":  {stub.Options{URL: "https://h/ignition?node=7"}, "https://h/ignition?node=7"},
		"bracketed":             {stub.Options{URL: "https://[fd00::5]:22623", Pool: "w"}, "https://[fd00::5]:22623/config/w"},
		"address and port":      {stub.Options{URL: "https://fd00::5:22623", Pool: "w"}, "https://[fd00::5]:22623/config/w"},
		"address alone":         {stub.Options{URL: "https://fd00::5/config/w"}, "https://[fd00::5]/config/w"},
		"address or port":       {stub.Options{URL: "https://fd00::5:8443/config/w"}, "in two ways"},
		"no address":            {stub.Options{URL: "https://a:b:c/config/w"}, "no host"},
		"no URL":                {stub.Options{}, "none given"},
		"no pool":               {stub.Options{URL: server}, "names no config"},
		"another pool":          {stub.Options{URL: server + "/config/worker", Pool: "infra"}, "already names"},
		"a pool with a slash":   {stub.Options{URL: server, Pool: "../worker"}, "not the name of a pool"},
		"no scheme":             {stub.Options{URL: "api-int.example.com:22623"}, "want https://"},
		"another scheme":        {stub.Options{URL: "tftp://h/config/w"}, "want https"},
		"no host":               {stub.Options{URL: "https:///config/w"}, "no host"},
		"a password":            {stub.Options{URL: "https://u:S3CR3T@h/config/w"}, "password"},
		"a fragment":            {stub.Options{URL: server + "/config/w#x"}, "never reaches"},
		"compressed, not asked": {stub.Options{URL: server + "/config/w.gz"}, "ask for gzip"},
		"deeper":                {stub.Options{URL: server + "/config/a/b"}, "no more"},
		"a token in the clear":  {stub.Options{URL: "http://h/config/w", Token: "t"}, "reads the token"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := stub.Render(c.options)
			if err != nil {
				if !isInput(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "S3CR3T") {
					t.Fatalf("got %v, want an InputError that says %q", err, c.want)
				}
				return
			}
			if got := *parse(t, made.JSON).Ignition.Config.Merge[0].Source; got != c.want {
				t.Errorf("source %q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatAVersionCannotHold(t *testing.T) {
	ca := fetchtest.NewCA(t, "ca").PEM
	for field, o := range map[string]stub.Options{
		"gzip": {Gzip: true}, "token": {Token: "t"}, "proxy": {HTTPSProxy: "https://proxy:3128"},
	} {
		for _, v := range stub.Versions {
			o.Version, o.URL, o.CAs = v, server+"/config/worker", [][]byte{ca}
			_, err := stub.Render(o)
			if v >= stub.V3_1 && err != nil {
				t.Errorf("%s in %s: %v", field, v, err)
			}
			if v < stub.V3_1 && (err == nil || !strings.Contains(err.Error(), "take 3.1.0 or newer")) {
				t.Errorf("%s in %s: %v, want a refusal", field, v, err)
			}
		}
	}
}

func TestBadOptions(t *testing.T) {
	now := time.Now()
	config := func(version string) []byte { return []byte(`{"ignition":{"version":"` + version + `"}}`) }
	for name, c := range map[string]struct {
		options stub.Options
		says    string
	}{
		"version":              {stub.Options{Version: "3.9.0"}, "is none of"},
		"no certificate":       {stub.Options{CAs: [][]byte{[]byte("hello")}}, "no certificate in it"},
		"a key":                {stub.Options{CAs: [][]byte{[]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}}, "PRIVATE KEY"},
		"a broken certificate": {stub.Options{CAs: [][]byte{[]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}}, "cannot be read"},
		"two words of token":   {stub.Options{Token: "a b"}, "one word"},
		"an old token":         {stub.Options{Token: jwt(now.Add(-time.Minute)), Now: now}, "expired"},
		"a header's name":      {stub.Options{Token: "t", AuthHeader: "X: y"}, "no name of a header"},
		"a header for nothing": {stub.Options{AuthHeader: "X-Auth"}, "without a token"},
		"a negative timeout":   {stub.Options{HTTPTotal: -1}, "less than nothing"},
		"no proxy to avoid":    {stub.Options{NoProxy: []string{"example.com"}}, "name the proxy"},
		"a bad proxy":          {stub.Options{HTTPSProxy: "socks5://proxy"}, "Ignition finds"},
		"a snippet of YAML":    {stub.Options{Snippets: []stub.Snippet{{Name: "s", Config: []byte("variant: fcos\n")}}}, "butane"},
		"a newer snippet":      {stub.Options{Snippets: []stub.Snippet{{Name: "s", Config: config("3.6.0")}}}, "--spec 3.6.0"},
		"a snippet of 2.2":     {stub.Options{Snippets: []stub.Snippet{{Name: "s", Config: config("2.2.0")}}}, "no Ignition reads both"},
		"an invalid snippet": {stub.Options{Snippets: []stub.Snippet{{Name: "s",
			Config: []byte(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"relative"}]}}`)}}}, "snippet s"},
		"a platform": {stub.Options{Platform: "moon"}, "want one of"},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.URL = server + "/config/worker"
			if _, err := stub.Render(c.options); !isInput(err) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line that says %q", err, c.says)
			}
		})
	}
}

// Field case 75: two CAs fit into 4 KiB, and what does not fit names its largest part.
func TestSize(t *testing.T) {
	o := stub.Options{URL: server + "/config/worker", CAs: [][]byte{fetchtest.NewCA(t, "old").PEM, fetchtest.NewCA(t, "new").PEM}, Platform: "aws"}
	made, err := stub.Render(o)
	if err != nil || len(made.JSON) > 4096 {
		t.Fatalf("%d bytes, %v", len(made.JSON), err)
	}
	o.Snippets = []stub.Snippet{{Name: "big.ign", Config: []byte(`{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/a","contents":{"source":"data:;base64,` +
		base64.StdEncoding.EncodeToString(noise(13000)) + `"}}]}}`)}}
	_, err = stub.Render(o)
	large, ok := errors.AsType[*stub.TooLargeError](err)
	if !ok || large.Largest.Name != "snippet big.ign" || large.Limit != 16384 || large.Size <= large.Limit {
		t.Errorf("got %v, want the largest part named", err)
	}
	o.Platform = "metal"
	if _, err := stub.Render(o); err != nil {
		t.Errorf("metal has no limit: %v", err)
	}
	for name, limit := range stub.Platforms {
		if _, ok := limit.Fits(limit.Bytes + 1); limit.Bytes > 0 && ok {
			t.Errorf("%s takes more than its limit", name)
		}
	}
}

func TestWarnings(t *testing.T) {
	now := time.Now().Truncate(time.Second) // as a token counts
	leaf := fetchtest.NewCA(t, "ca").Issue(t)
	o := stub.Options{URL: server + "/config/worker", Token: jwt(now.Add(time.Hour)), BootBudget: 2 * time.Hour, Now: now,
		CAs: [][]byte{pemOf(leaf.Leaf.Raw), fetchtest.NewCA(t, "old", fetchtest.Expired).PEM}}
	made, err := stub.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(made.Warnings, "\n")
	for _, want := range []string{"the token expires in 1h0m0s", "not a CA but a server's", `CA "old" expired`} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning of %q in\n%s", want, warnings)
		}
	}
}

func TestForms(t *testing.T) {
	made, err := stub.Render(stub.Options{URL: server + "/config/worker"})
	if err != nil {
		t.Fatal(err)
	}
	type secret struct {
		Kind     string
		Metadata struct {
			Name, Namespace string
			Labels          map[string]string
		}
		Type string
		Data map[string][]byte
	}
	read := func(form stub.Form, s stub.Secret) (got secret, warnings []string) {
		text, warnings, err := made.Write(form, s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		return got, warnings
	}
	got, warnings := read(stub.MachineAPI, stub.Secret{Name: "worker-user-data-mcsnap"})
	if !bytes.Equal(got.Data["userData"], made.JSON) || string(got.Data["disableTemplating"]) != "true" ||
		got.Metadata.Namespace != "openshift-machine-api" || got.Type != "Opaque" || len(warnings) > 0 {
		t.Errorf("machine-api: %+v, %v", got, warnings)
	}
	// Field case 42.
	if _, warnings = read(stub.MachineAPI, stub.Secret{Name: "worker-user-data-managed"}); len(warnings) != 1 || !strings.Contains(warnings[0], "writes its own back") {
		t.Errorf("a Secret of the operator's: %v", warnings)
	}
	got, _ = read(stub.ClusterAPI, stub.Secret{Name: "w", Namespace: "ns", Cluster: "c"})
	if !bytes.Equal(got.Data["value"], made.JSON) || string(got.Data["format"]) != "ignition" ||
		got.Type != "cluster.x-k8s.io/secret" || got.Metadata.Labels["cluster.x-k8s.io/cluster-name"] != "c" {
		t.Errorf("cluster-api: %+v", got)
	}
	text, _, err := made.Write(stub.Base64, stub.Secret{})
	if decoded, bad := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err != nil || bad != nil || !bytes.Equal(decoded, made.JSON) {
		t.Errorf("base64: %v, %v", err, bad)
	}
	for form, s := range map[stub.Form]stub.Secret{stub.MachineAPI: {}, stub.ClusterAPI: {Name: "w"}, "yaml": {}} {
		if _, _, err := made.Write(form, s); !isInput(err) {
			t.Errorf("%s of %+v: %v, want an InputError", form, s, err)
		}
	}
}

// Field case 85: a token is on the machine only where it was asked for; and the same options give the same bytes.
func TestDeterministic(t *testing.T) {
	ca := fetchtest.NewCA(t, "ca").PEM
	for _, v := range stub.Versions {
		o := stub.Options{Version: v, URL: server + "/config/worker", CAs: [][]byte{ca, ca}, HTTPTotal: 60}
		first, err := stub.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if again, err := stub.Render(o); err != nil || !bytes.Equal(again.JSON, first.JSON) {
				t.Fatalf("%s: other bytes for the same options, %v", v, err)
			}
		}
		if bytes.Contains(first.JSON, []byte(stub.TokenPath)) || bytes.Count(first.JSON, []byte("data:;base64,")) != 1 {
			t.Errorf("%s: a token nobody asked for, or one CA twice: %s", v, first.JSON)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("https://fd00::5:22623", "worker", "token", true)
	f.Add("https://h/config/w?x=%zz", "", "", false)
	f.Fuzz(func(t *testing.T, url, pool, token string, gzip bool) {
		made, err := stub.Render(stub.Options{URL: url, Pool: pool, Token: token, Gzip: gzip})
		if err != nil {
			if !isInput(err) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if _, err := stub.Validate(made.JSON); err != nil {
			t.Fatalf("Ignition refuses what was rendered: %v\n%s", err, made.JSON)
		}
	})
}

func isInput(err error) bool { _, ok := errors.AsType[*stub.InputError](err); return ok }

func jwt(expires time.Time) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expires.Unix())) + ".sig"
}
