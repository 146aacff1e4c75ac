// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

const renderHelp = `Render runs the pipelines of a package and of the packages inside it, as
'kpt fn render' does: innermost packages first, mutators before validators.
The first error ends it, and then nothing is written.`

const renderExamples = `  # Render a package in place and show what changed
  fnctl render ./web --diff

  # See what would change
  fnctl render ./web --diff --dry-run

  # Leave the package alone and write the result elsewhere
  fnctl render ./web -o ./rendered`

// renderCommand is one call of fnctl render.
type renderCommand struct {
	env     Environment
	gateway gatewayFlags
	output  outputFlags
}

func newRender(env Environment) *cobra.Command {
	c := &renderCommand{env: env}
	cmd := &cobra.Command{
		Use:     "render DIR",
		Short:   "Run the pipeline of a package",
		Long:    renderHelp,
		Example: renderExamples,
		Args:    oneArg("DIR, a package"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.output.check(); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	c.gateway.register(cmd.Flags(), env)
	c.output.register(cmd.Flags())
	return cmd
}

func (c *renderCommand) run(ctx context.Context, dir string) error {
	tree, err := pkgtree.Read(dir)
	if err != nil {
		return err
	}
	plan, err := pipeline.NewPlan(tree.Root)
	if err != nil {
		return err
	}
	gateway, err := c.gateway.connect()
	if err != nil {
		return err
	}
	defer gateway.Close()
	progress := c.env.progress()
	renderer := &pipeline.Renderer{
		Evaluator: c.gateway.evaluator(gateway, progress), Observer: progress,
		Timeout: c.gateway.timeout,
	}
	resources, err := renderer.Render(ctx, plan)
	if err != nil {
		return err
	}
	progress.Line("Ran %s in %s", count(plan.Functions(), "function"), count(plan.Packages(), "package"))
	return c.output.write(ctx, c.env, dir, tree, resources)
}

// count returns a number with a noun in singular or plural.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// oneArg requires one argument before any dashes; its error describes the argument with what.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		if len(args) != 1 {
			return usageError{cmd.CommandPath(), errors.New("needs one argument: " + what)}
		}
		return nil
	}
}
