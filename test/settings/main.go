// SPDX-License-Identifier: Apache-2.0

// Command settings generates the tables of settings and flags in docs/configuration.md, the table of metrics in
// docs/metrics.md, and the meanings of settings in libs/gen. Its arguments are the root of the repository and the
// directory of the result, which contains the two documents.
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
		return fmt.Errorf("%q: want the root of the repository, and the directory of the result", args)
	}
	root, dir := args[0], args[1]
	// The meanings are first, because fnctl, whose flags follow, cannot be built without them.
	if err := writeMeanings(root, filepath.Join(dir, settings.MeaningsFile)); err != nil {
		return err
	}
	for _, table := range []struct {
		document string
		generate func(root, document string) (string, error)
	}{
		{"configuration.md", settings.Generate},
		{"configuration.md", settings.GenerateFlags},
		{"metrics.md", metrics.Generate},
	} {
		name := filepath.Join(dir, "docs", table.document)
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

func writeMeanings(root, name string) error {
	code, err := settings.GenerateMeanings(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, code, 0o644)
}
