// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/report"
)

// here is the default target of commands.
const here = "."

// targetArgument returns the directory or file to process, the argument before "--". The default is ".".
func targetArgument(cmd *cobra.Command, args []string) string {
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return here
	}
	return args[0]
}

// oneTarget returns a check for at most one argument before "--". The parameter what describes the argument in the
// error, such as "DIR, a package".
func oneTarget(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		if len(args) > 1 {
			return usageError{cmd.CommandPath(), errors.New("takes one argument: " + what)}
		}
		return nil
	}
}

// checkChoice returns an error unless the value of a flag is empty or one of the choices.
func checkChoice(flag, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return fmt.Errorf("takes %s for %s, got %q", strings.Join(choices, " or "), flag, value)
}

// functionFlags holds the flag --image-prefix, which several commands share.
type functionFlags struct{ prefix string }

func (f *functionFlags) register(flags *pflag.FlagSet, env Environment) {
	flags.StringVar(&f.prefix, "image-prefix", env.lookUp("KPT_IMAGE_PREFIX"),
		"put this before images without a slash; by default KPT_IMAGE_PREFIX, or else the gateway's own")
}

type resultsFlags struct{ dir string }

func (f *resultsFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.dir, "results-dir", "", "write what the functions report to results.yaml in this directory")
}

// prepare creates the directory of --results-dir. It fails before any function runs if the directory is invalid.
func (f *resultsFlags) prepare() error {
	if f.dir == "" {
		return nil
	}
	//nolint:gosec // results are for others to read, as far as the umask permits
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("--results-dir: %w", err)
	}
	return nil
}

func (f *resultsFlags) write(env Environment, steps []pipeline.Step) error {
	if f.dir == "" {
		return nil
	}
	name, err := report.WriteResults(f.dir, steps)
	if err != nil {
		return err
	}
	env.errPrinter().Line("Results: %s", name)
	return nil
}
