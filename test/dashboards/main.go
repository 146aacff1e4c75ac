// SPDX-License-Identifier: Apache-2.0

// Command dashboards generates the Grafana dashboards, and a PrometheusRule from the Prometheus rules. Its argument is
// the directory deploy/observability, with the rules and the generated files.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%q: want the directory deploy/observability", args)
	}
	files, err := generate(args[0])
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(args[0], name), content, 0o600); err != nil {
			return fmt.Errorf("write a generated file: %w", err)
		}
	}
	return nil
}
