// SPDX-License-Identifier: Apache-2.0

// Command settings generates the tables of settings and flags in configuration.md, and the table of metrics in
// metrics.md. Its arguments are the root of the repository and the directory of the two documents.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/test/internal/metrics"
	"github.com/krm-function-runner/function-runner/test/internal/settings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "settings:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%q: want the root of the repository, and the directory of documents", args)
	}
	root, dir := args[0], args[1]
	for _, table := range []struct {
		document string
		generate func(root, document string) (string, error)
	}{
		{"configuration.md", settings.Generate},
		{"configuration.md", settings.GenerateFlags},
		{"metrics.md", metrics.Generate},
	} {
		name := filepath.Join(dir, table.document)
		document, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text, err := table.generate(root, string(document))
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
