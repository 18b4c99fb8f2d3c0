// SPDX-License-Identifier: Apache-2.0

package tell

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// share writes what a system has below share/ for a program: a man page for each command, and completions. The pages'
// date is SOURCE_DATE_EPOCH, so that the same source makes the same pages.
func share(root *cobra.Command, folder string) error {
	man := filepath.Join(folder, "man/man1")
	completions := map[string]func(string) error{
		filepath.Join("bash-completion/completions", root.Name()):       func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		filepath.Join("zsh/site-functions", "_"+root.Name()):            root.GenZshCompletionFile,
		filepath.Join("fish/vendor_completions.d", root.Name()+".fish"): func(file string) error { return root.GenFishCompletionFile(file, true) },
	}
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	for name, write := range completions {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := write(file); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
	}
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: root.Name() + " " + root.Version, Manual: "mcsnap"}, man)
}
