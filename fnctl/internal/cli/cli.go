// SPDX-License-Identifier: Apache-2.0

// Package cli contains fnctl's main commands, such as render and eval. Start with cli.go, render.go and eval.go.
// Other commands have packages of their own, such as docker and golden. All commands share the package command, and
// the package backend selects where functions run.
package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/docker"
	"github.com/krm-function-runner/function-runner/fnctl/internal/doctor"
	"github.com/krm-function-runner/function-runner/fnctl/internal/golden"
	"github.com/krm-function-runner/function-runner/fnctl/internal/images"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pods"
	"github.com/krm-function-runner/function-runner/fnctl/internal/top"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/version"
)

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
func Run(ctx context.Context, env command.Environment, args []string) int {
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
	root.SetFlagErrorFunc(command.UsageError)
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.AddCommand(newRender(env), newEval(env), golden.NewCommand(env, Run), newSource(env), newSink(env), newDoc(env),
		newFunctions(env), pods.NewCommand(env), top.NewCommand(env), images.NewCommand(env), docker.NewCommand(env),
		doctor.NewCommand(env), newVersion(env))
	err := root.ExecuteContext(ctx)
	printError(env, err)
	return exitCode(err)
}

// hasNoColour reports whether the arguments contain --no-color. Run calls it before the flags are parsed. Otherwise, an
// error about another flag would be printed in colour.
func hasNoColour(args []string) bool {
	if dash := slices.Index(args, "--"); dash >= 0 {
		args = args[:dash]
	}
	return slices.Contains(args, "--no-color") || slices.Contains(args, "--no-color=true")
}

// printError prints an error, its remedy and its trace id on standard error.
func printError(env command.Environment, err error) {
	for i, line := range errorLines(err) {
		env.ErrPrinter().Line("%s%s", []string{"fnctl: ", "  "}[min(i, 1)], ui.Printable(line))
	}
}

func newVersion(env command.Environment) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of fnctl",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { env.OutPrinter().Line("fnctl version %s", version.String()) },
	}
}
