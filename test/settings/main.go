// SPDX-License-Identifier: Apache-2.0

// Command settings writes the tables of settings, and of fnctl's flags, in a document such as docs/configuration.md.
// Its arguments are the root of the repository and the document.
package main

import (
	"fmt"
	"os"

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
		return fmt.Errorf("%q: want the root of the repository, and a document", args)
	}
	document, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	text, err := settings.Generate(args[0], string(document))
	if err != nil {
		return err
	}
	if text, err = settings.GenerateFlags(args[0], text); err != nil {
		return err
	}
	return os.WriteFile(args[1], []byte(text), 0o600)
}
