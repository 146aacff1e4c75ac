// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

// toTerminal is the value of --explain if the user gives no file. The changes are then shown on the terminal.
const toTerminal = "-"

// Flag holds the flag --explain, which shows the changes of each function.
type Flag struct{ target string }

// Register adds the flag.
func (f *Flag) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.target, "explain", "",
		"show what each function changed as diffs; with --explain=FILE.html as a web page that needs no network")
	flags.Lookup("explain").NoOptDefVal = toTerminal
}

// IsWanted reports whether the flag is set.
func (f *Flag) IsWanted() bool { return f.target != "" }

// Check returns an error if the file of --explain cannot be written or is a link. It is called before any function
// runs.
func (f *Flag) Check() error {
	if f.target == "" || f.target == toTerminal {
		return nil
	}
	if err := command.RejectLink("--explain", f.target); err != nil {
		return err
	}
	file, err := os.OpenFile(f.target, os.O_WRONLY|os.O_CREATE, 0o666) //nolint:gosec // the umask decides who may read it
	if err != nil {
		return fmt.Errorf("--explain: %w", err)
	}
	return file.Close()
}

// WriteSteps shows the file changes of each function that ran, on the terminal or as a web page. If the rendering
// failed, failure is its error.
func (f *Flag) WriteSteps(out *ui.Printer, dir string, rendering *pipeline.Rendering, failure error) error {
	switch f.target {
	case "":
		return nil
	case toTerminal:
		steps := rendering.Steps()
		for i, step := range steps {
			out.Title(fmt.Sprintf("Step %d of %d: %s", i+1, len(steps), Title(step)))
			if len(step.Changes) == 0 {
				out.Line("no file changed")
			}
			out.Diff(step.Changes)
			out.Line("")
		}
		return nil
	}
	file, err := os.Create(f.target)
	if err != nil {
		return fmt.Errorf("--explain: %w", err)
	}
	return errors.Join(Write(file, dir, rendering, failure), file.Close())
}
