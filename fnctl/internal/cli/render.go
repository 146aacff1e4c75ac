// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
)

const renderHelp = `Render runs the pipelines of a package and of the packages inside it, as
'kpt fn render' does: innermost packages first, mutators before validators. Without DIR it
renders the current directory.
The first error ends it. Then nothing is written but the status of the Kptfile, or, if the
Kptfile has the annotation kpt.dev/save-on-render-failure: "true", also what was rendered before.`

const renderExamples = `  # Render a package in place and show what changed
  fnctl render ./web --diff
  # Run its functions on this machine, without a function runner
  fnctl render ./web --local
  # See what would change
  fnctl render ./web --diff --dry-run
  # Leave the package alone and write the result elsewhere
  fnctl render ./web -o ./rendered
  # Apply the result
  fnctl render ./web -o unwrap | kubectl apply -f -
  # Keep what the functions reported
  fnctl render ./web --results-dir ./reports`

// renderCommand is one call of fnctl render.
type renderCommand struct {
	env       Environment
	gateway   gatewayFlags
	output    outputFlags
	results   resultsFlags
	kpt       kptFlags
	functions functionFlags
	allowExec bool
	noStatus  bool
}

func newRender(env Environment) *cobra.Command {
	c := &renderCommand{env: env}
	cmd := &cobra.Command{
		Use:               "render [DIR]",
		Short:             "Run the pipeline of a package",
		Long:              renderHelp,
		Example:           renderExamples,
		Args:              oneTarget("DIR, a package"),
		ValidArgsFunction: completePackages,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(c.prepare(), c.gateway.check(cmd.Flags())); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			c.kpt.reportIgnored(env, cmd.Flags())
			return c.run(cmd.Context(), target(cmd, args))
		},
	}
	c.register(cmd.Flags())
	return cmd
}

func (c *renderCommand) register(flags *pflag.FlagSet) {
	flags.BoolVar(&c.allowExec, "allow-exec", false, "permit functions that are programs of this machine (exec)")
	flags.BoolVar(&c.noStatus, "no-status", false, "leave the status of the Kptfile alone")
	c.gateway.register(flags, c.env)
	c.functions.register(flags, c.env)
	c.output.register(flags)
	c.results.register(flags)
	c.kpt.register(flags, "image-pull-policy", "allow-network")
	c.kpt.reject(flags, "allow-alpha-wasm", "a function runner runs images, not WebAssembly")
}

// prepare checks the command line.
func (c *renderCommand) prepare() error {
	if err := c.kpt.check(); err != nil {
		return err
	}
	if err := c.output.check(); err != nil {
		return err
	}
	return c.results.prepare()
}

func (c *renderCommand) run(ctx context.Context, dir string) (err error) {
	tree, plan, err := readPlan(dir, pipeline.Options{AllowExec: c.allowExec, ImagePrefix: c.functions.prefix})
	if err != nil {
		return c.failUnplanned(ctx, dir, tree, err)
	}
	progress := c.env.progress()
	evaluator, err := c.gateway.open(ctx, c.env, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, evaluator.close()) }()
	renderer := &pipeline.Renderer{Evaluator: evaluator, Observer: progress, Timeout: c.gateway.timeout}
	rendering, failure := renderer.Render(ctx, plan)
	if ctx.Err() != nil && failure != nil {
		return failure
	}
	err = c.results.write(c.env, rendering.Steps())
	if err != nil && failure == nil {
		return err
	}
	if failure != nil {
		return c.fail(ctx, dir, tree, rendering, failure)
	}
	progress.Line("Ran %s in %s", count(len(rendering.Steps()), "function"), count(plan.Packages(), "package"))
	return c.finish(ctx, dir, tree, rendering)
}

// readPlan reads a package, and plans its rendering.
func readPlan(dir string, options pipeline.Options) (*pkgtree.Tree, *pipeline.Plan, error) {
	tree, err := pkgtree.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	plan, err := pipeline.NewPlan(tree.Root, options)
	return tree, plan, err
}

// count returns a number with a noun in singular or plural.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
