// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// The image is the same whoever builds it wherever, has static programs of the right architecture and nothing else, and
// says what they were built of.
func TestImage(t *testing.T) {
	first := buildImage(t, "../..")
	elsewhere := filepath.Join(t.TempDir(), "another", "clone")
	clone(t, elsewhere)
	second := buildImage(t, elsewhere)
	if first.Digest != second.Digest {
		t.Errorf("two builds, %s and %s", first.Digest, second.Digest)
	}
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		image := first.Images[arch]
		if image == nil {
			t.Fatalf("no image for %s", arch)
		}
		if !bytes.Equal(image.Bill, second.Images[arch].Bill) {
			t.Errorf("%s: two bills", arch)
		}
		if config := image.Config.Config; config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{"/mcs"}) {
			t.Errorf("%s: %+v", arch, config)
		}
		machines := map[string]elf.Machine{"/mcs": machine, "/agents/amd64/mcsnap-agent": elf.EM_X86_64, "/agents/arm64/mcsnap-agent": elf.EM_AARCH64}
		for path, f := range image.Files {
			if f.Uid != 0 || f.Gid != 0 || f.Mode&0o022 != 0 || f.Typeflag != tar.TypeReg && f.Typeflag != tar.TypeDir {
				t.Errorf("%s: %s: %+v", arch, path, f.Header)
			}
			if want, program := machines[path]; program {
				static(t, path, f.Text, want)
				delete(machines, path)
			} else if f.Typeflag == tar.TypeReg && path != "/LICENSE" {
				t.Errorf("%s: %s is in the image", arch, path)
			}
		}
		if len(machines) > 0 {
			t.Errorf("%s: without %v", arch, machines)
		}
		billTellsOf(t, image)
	}
}

// static fails for a program of another architecture, and for one that needs a loader or libraries.
func static(t *testing.T, path string, text []byte, want elf.Machine) {
	t.Helper()
	program, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	libraries, _ := program.ImportedLibraries() // there is no section that could tell
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			t.Errorf("%s wants a loader", path)
		}
	}
	if program.Machine != want || len(libraries) > 0 {
		t.Errorf("%s is for %v and needs %v", path, program.Machine, libraries)
	}
}

// billTellsOf compares an image's bill of materials with the image, and with the product's go.mod.
func billTellsOf(t *testing.T, image *Image) {
	t.Helper()
	var bill struct {
		BomFormat  string
		Components []struct {
			Name, Version, Purl string
			Hashes              []struct{ Alg, Content string }
		}
	}
	if err := json.Unmarshal(image.Bill, &bill); err != nil {
		t.Fatalf("the bill: %v", err)
	}
	listed := map[string]string{}
	for _, c := range bill.Components {
		listed[c.Name] = c.Version
		if f, isFile := image.Files[c.Name]; isFile {
			if sum := sha256.Sum256(f.Text); len(c.Hashes) != 1 || c.Hashes[0].Content != hex.EncodeToString(sum[:]) {
				t.Errorf("%s has another hash than %v", c.Name, c.Hashes)
			}
		}
	}
	for _, name := range []string{"/mcs", "/agents/amd64/mcsnap-agent", "/agents/arm64/mcsnap-agent"} {
		if listed[name] == "" {
			t.Errorf("the bill does not name %s", name)
		}
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"k8s.io/client-go", "github.com/coreos/ignition/v2", "github.com/prometheus/client_golang"} {
		if !strings.Contains(string(mod), module+" "+listed[module]+"\n") {
			t.Errorf("the bill says %s %q, go.mod something else", module, listed[module])
		}
	}
	if want := strings.TrimPrefix(runtime.Version(), "go"); listed["std"] != want {
		t.Errorf("the bill says Go %s, it is %s", listed["std"], want)
	}
}

// buildImage runs make image in a clone.
func buildImage(t *testing.T, clone string) *Layout {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image")
	cmd := exec.Command("make", "--no-print-directory", "-C", clone, "image", "IMAGE="+out, "VERSION=1.2.3")
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1796104334")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make image: %v\n%s", err, said)
	}
	l, err := ReadLayout(filepath.Join(out, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), l.Digest) {
		t.Errorf("it is %s, and make image printed\n%s", l.Digest, said)
	}
	return l
}

// clone copies what git would know of the tree as it is.
func clone(t *testing.T, to string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for path := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		from := filepath.Join("../..", path)
		info, err := os.Stat(from)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, path), text, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

// The Containerfile makes the same image, as far as can be told without an engine.
func TestContainerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "image", "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	build, last, found := strings.Cut(string(text), "\nFROM scratch\n")
	if !found {
		t.Fatal("it is not from scratch")
	}
	want := strings.Join([]string{
		"COPY LICENSE /LICENSE", "COPY --from=build /out/agents /agents", "COPY --from=build /out/mcs /mcs",
		"USER 65532:65532", "WORKDIR /", `ENTRYPOINT ["/mcs"]`, "",
	}, "\n")
	if last != want {
		t.Errorf("the last stage is\n%s\nwant\n%s", last, want)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`go build (-trimpath -ldflags) ['"]([^'"]*)['"]`)
	for _, m := range flags.FindAllStringSubmatch(build, -1) {
		if !strings.Contains(string(makefile), m[1]+" '"+strings.ReplaceAll(m[2], "$VERSION", "$(VERSION)")+"'") {
			t.Errorf("make image does not build with %s", m[2])
		}
	}
	for _, word := range []string{"CGO_ENABLED=0", "--platform=$BUILDPLATFORM", "GOARCH=$TARGETARCH", "for arch in amd64 arm64"} {
		if !strings.Contains(build, word) {
			t.Errorf("no %s in it", word)
		}
	}
}
