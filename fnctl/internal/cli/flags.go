// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/report"
)

type resultsFlags struct{ dir string }

func (f *resultsFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "results-dir", "", "write what the functions report to results.yaml in this directory")
}

// prepare creates the directory of --results-dir before any function runs. It fails if the directory is invalid, or if
// the directory or its results.yaml is a symbolic link.
func (f *resultsFlags) prepare() error {
	if f.dir == "" {
		return nil
	}
	err := cmp.Or(command.RejectLink("--results-dir", f.dir),
		command.RejectLink("--results-dir", filepath.Join(f.dir, report.ResultsFile)))
	if err != nil {
		return err
	}
	//nolint:gosec // results are for others to read, as far as the umask permits
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("--results-dir: %w", err)
	}
	return nil
}

func (f *resultsFlags) write(env command.Environment, steps []pipeline.Step) error {
	if f.dir == "" {
		return nil
	}
	name, err := report.WriteResults(f.dir, steps)
	if err != nil {
		return err
	}
	env.ErrPrinter().Line("Results: %s", name)
	return nil
}
