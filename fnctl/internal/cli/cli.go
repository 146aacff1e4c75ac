// SPDX-License-Identifier: Apache-2.0

// Package cli is fnctl's command line: its commands, flags, output and exit codes.
package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/version"
)

// Environment contains the environment variables and standard streams of fnctl.
type Environment struct {
	// Environ contains fnctl's environment variables, as "NAME=value". Programs that run as functions inherit them.
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// imageProgram is a local program that runs instead of every image, such as a function whose image is not built
	// yet. If it is empty, the images run.
	imageProgram string
}

// lookUp returns the value of an environment variable. It is empty if the variable is not set.
func (e Environment) lookUp(name string) string {
	for _, variable := range slices.Backward(e.Environ) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}

const rootHelp = `fnctl runs KRM functions on packages, through a function runner or, with --local, on your machine.

Exit codes: 0 done, 1 a function or a test failed, 2 anything else, 3 'render --check' found files that would change,
130 interrupted.

Environment:
  FNCTL_ADDRESS            the gateway, as --address
  FNCTL_NAMESPACE          the gateway of a cluster, as --namespace
  NO_COLOR                 no colours, if it is set, as --no-color; nor with TERM=dumb
  CLICOLOR_FORCE           colours on pipes too, if it is set and not 0
  KPT_IMAGE_PREFIX         as --image-prefix
  KPT_FN_RUNTIME           docker, podman or nerdctl, for 'fnctl doc' without --local
  KRM_DISABLE_ATTRIBUTION  no annotation cnrm.cloud.google.com/blueprint, if it is set`

const rootExamples = `  # Render a package and show what changed
  fnctl render ./web --diff
  # Run its functions on this machine, in sandboxes, without a function runner
  fnctl render ./web --local
  # Run one function
  fnctl eval ./web --image set-namespace:v0.4.5 -- namespace=shop
  # A pipe of functions
  fnctl source ./web | fnctl eval - -i set-namespace:v0.4.5 -- namespace=shop | fnctl sink ./shop`

// Run runs an fnctl command and returns the exit code of the process. The arguments exclude the program's name.
func Run(ctx context.Context, env Environment, args []string) int {
	if hasNoColour(args) {
		env.Environ = append(slices.Clip(env.Environ), "NO_COLOR=1")
	}
	root := &cobra.Command{
		Use:           "fnctl",
		Short:         "Run KRM functions through a function runner",
		Long:          rootHelp,
		Example:       rootExamples,
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().Bool("no-color", false, "no colours, as with NO_COLOR")
	groupFlags(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{cmd.CommandPath(), err} })
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.AddCommand(newRender(env), newEval(env), newTest(env), newSource(env), newSink(env), newDoc(env),
		newFunctions(env), newPods(env), newTop(env), newImages(env), newDocker(env), newDoctor(env), newVersion(env))
	err := root.ExecuteContext(ctx)
	env.printError(err)
	return exitCode(err)
}

// hasNoColour reports whether the arguments contain --no-color. Run needs the answer before it parses the flags, so
// that errors about other flags have no colour either.
func hasNoColour(args []string) bool {
	if dash := slices.Index(args, "--"); dash >= 0 {
		args = args[:dash]
	}
	return slices.Contains(args, "--no-color") || slices.Contains(args, "--no-color=true")
}

// printError prints an error, its remedy and its trace id on standard error.
func (e Environment) printError(err error) {
	for i, line := range errorLines(err) {
		e.errPrinter().Line("%s%s", []string{"fnctl: ", "  "}[min(i, 1)], ui.Printable(line))
	}
}

func (e Environment) errPrinter() *ui.Printer { return ui.NewPrinter(e.Stderr, e.usesColour(e.Stderr)) }

func (e Environment) outPrinter() *ui.Printer { return ui.NewPrinter(e.Stdout, e.usesColour(e.Stdout)) }

func (e Environment) progress() *ui.Progress {
	return &ui.Progress{
		Printer: e.errPrinter(), Live: isTerminal(e.Stderr),
		Width: func() int { width, _ := terminalSize(e.Stderr); return width },
	}
}

// replaceLine shows a text in the last line of a terminal, if it fits. It shows nothing in a pipe.
func (e Environment) replaceLine(text string) {
	if width, _ := terminalSize(e.Stderr); len(ui.OneLine(text)) < width {
		e.errPrinter().Replace(ui.OneLine(text))
	}
}

func (e Environment) usesColour(w io.Writer) bool {
	switch force := e.lookUp("CLICOLOR_FORCE"); {
	case e.lookUp("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return isTerminal(w) && e.lookUp("TERM") != "dumb"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalSize returns the current number of columns and lines of the terminal w. Both are 0 if w is no terminal.
func terminalSize(w io.Writer) (width, height int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}

func newVersion(env Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of fnctl",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { env.outPrinter().Line("fnctl version %s", version.String()) },
	}
}
