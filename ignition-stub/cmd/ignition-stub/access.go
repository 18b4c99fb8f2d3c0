// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcsnap/mcsnap/ignition-stub/fetch"
	"github.com/mcsnap/mcsnap/ignition-stub/stub"
)

// accessFlags say whom to believe and what to show, where a URL is given instead of a stub.
type accessFlags struct {
	caFiles               []string
	tokenFile, authHeader string
}

func (f *accessFlags) register(flags *pflag.FlagSet, when string) {
	flags.StringArrayVar(&f.caFiles, "ca", nil, when+"file of CA certificates in PEM (may be given several times; none: the operating system's)")
	flags.StringVar(&f.tokenFile, "token-file", "", when+"file with the token that the server wants, - for standard input")
	flags.StringVar(&f.authHeader, "auth-header", "", when+"header for the token (default Authorization, as Bearer)")
}

func (f *accessFlags) given() bool {
	return len(f.caFiles) > 0 || f.tokenFile != "" || f.authHeader != ""
}

type access struct {
	cas                   [][]byte
	token, headerForToken string
}

func (f *accessFlags) read(stdin io.Reader) (a access, err error) {
	a.headerForToken = f.authHeader
	for _, name := range f.caFiles {
		bundle, err := readFile(name, stdin)
		if err != nil {
			return a, fmt.Errorf("--ca: %w", err)
		}
		if _, err := fetch.ParseCertificates(bundle); err != nil {
			return a, fmt.Errorf("--ca %s: %w", name, err)
		}
		a.cas = append(a.cas, bundle)
	}
	if f.tokenFile == "" {
		return a, nil
	}
	token, err := readFile(f.tokenFile, stdin)
	if err != nil {
		return a, fmt.Errorf("--token-file: %w", err)
	}
	if a.token = strings.TrimSpace(string(token)); a.token == "" {
		return a, badInput("--token-file %s: there is no token in it", f.tokenFile)
	}
	return a, nil
}

func (a access) options() stub.Options {
	return stub.Options{CAs: a.cas, Token: a.token, AuthHeader: a.headerForToken, Now: time.Now()}
}

func (a access) ca() []byte { return bytes.Join(a.cas, []byte("\n")) }

func (a access) header() (name, value string) {
	switch {
	case a.token == "":
		return "", ""
	case a.headerForToken == "" || strings.EqualFold(a.headerForToken, "Authorization"):
		return "Authorization", "Bearer " + a.token
	}
	return a.headerForToken, a.token
}

// progress shows on a terminal how far a body has come, four times a second. Elsewhere it is nil.
func progress(out io.Writer) func(got, whole int64) {
	file, ok := out.(*os.File)
	if !ok {
		return nil
	}
	if info, err := file.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	var shown time.Time
	return func(got, whole int64) {
		done := got == whole
		if time.Since(shown) < 250*time.Millisecond && !done {
			return
		}
		shown = time.Now()
		if whole < 0 {
			fmt.Fprintf(out, "\r%d KB\033[K", got/1000)
		} else {
			fmt.Fprintf(out, "\r%d of %d KB\033[K", got/1000, whole/1000)
		}
		if done {
			fmt.Fprint(out, "\r\033[K")
		}
	}
}
