// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/complete"
	"github.com/krm-function-runner/function-runner/fnctl/internal/explain"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/report"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
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
  fnctl render ./web --results-dir ./reports
  # In CI: fail if a committed package is not rendered, and annotate its files
  fnctl render ./web --check --results-format github
  # See what each function changed
  fnctl render ./web --dry-run --explain=web.html`

type renderCommand struct {
	env       command.Environment
	gateway   backend.Flags
	output    outputFlags
	results   resultsFlags
	kpt       kptFlags
	prefix    string
	explain   explain.Flag
	allowExec bool
	noStatus  bool
	check     bool
	format    string
	jobs      int
}

func newRender(env command.Environment) *cobra.Command {
	c := &renderCommand{env: env}
	cmd := &cobra.Command{
		Use:               "render [DIR]",
		Short:             "Run the pipeline of a package",
		Long:              renderHelp,
		Example:           renderExamples,
		Args:              command.OneTarget("DIR, a package"),
		ValidArgsFunction: complete.Packages,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(c.prepare(), c.gateway.Check(cmd.Flags())); err != nil {
				return command.UsageError(cmd, err)
			}
			c.kpt.reportIgnored(env, cmd.Flags())
			return c.run(cmd.Context(), command.TargetArgument(cmd, args))
		},
	}
	c.register(cmd.Flags())
	return cmd
}

func (c *renderCommand) register(flags *pflag.FlagSet) {
	flags.BoolVar(&c.allowExec, "allow-exec", false, "permit functions that are programs of this machine (exec)")
	flags.BoolVar(&c.noStatus, "no-status", false, "leave the status of the Kptfile alone")
	flags.BoolVar(&c.check, "check", false, "write nothing, name the files that a render would change, apart from the "+
		"status of the Kptfile, and exit with 3 if there are any")
	flags.StringVar(&c.format, "results-format", "", "write results, failures and the files of --check to standard "+
		"output: github for annotations of lines, json or junit")
	flags.IntVar(&c.jobs, "jobs", 0, "how many packages inside the package to render concurrently, 1 for one after the "+
		"other; by default twice the number of processors, and 1 with --trace")
	c.gateway.Register(flags, c.env)
	command.RegisterImagePrefix(flags, c.env, &c.prefix)
	c.output.register(flags)
	c.results.register(flags)
	c.explain.Register(flags)
	c.kpt.register(flags, "image-pull-policy", "allow-network")
	c.kpt.reject(flags, "allow-alpha-wasm", "a function runner runs images, not WebAssembly")
}

// prepare checks the command line, and creates the directory of --results-dir.
func (c *renderCommand) prepare() error {
	if err := c.kpt.check(); err != nil {
		return err
	}
	if err := cmp.Or(c.output.check(), c.prepareCheck(), c.explain.Check()); err != nil {
		return err
	}
	return c.results.prepare()
}

// prepareCheck rejects invalid values of --check, --results-format and --jobs, and sets options that they imply.
func (c *renderCommand) prepareCheck() error {
	switch {
	case c.check && c.output.target != "":
		return errors.New("takes --check or --output, not both")
	case c.format != "" && !slices.Contains(report.Formats, c.format):
		return fmt.Errorf("takes %s for --results-format, got %q", strings.Join(report.Formats, ", "), c.format)
	case c.format != "" && c.output.isStream():
		return errors.New("takes --results-format or --output " + c.output.target + ": both write to standard output")
	case c.jobs < 0:
		return fmt.Errorf("takes 1 or more for --jobs, got %d", c.jobs)
	case c.jobs == 0 && c.gateway.Trace:
		c.jobs = 1 // concurrent evaluations would distort each other's durations
	}
	// The default exceeds the number of processors, because a function that is still starting uses no processor.
	c.jobs = cmp.Or(c.jobs, 2*runtime.GOMAXPROCS(0))
	c.output.quiet = c.format != ""
	if c.check {
		c.output.dryRun, c.noStatus = true, true
	}
	return nil
}

// run renders a package and, with --results-format, writes a report for CI systems to standard output.
func (c *renderCommand) run(ctx context.Context, dir string) error {
	rep := &report.Report{Dir: dir}
	rep.Failure = c.renderPackage(ctx, dir, rep)
	if c.format == "" || ctx.Err() != nil {
		return rep.Failure
	}
	return errors.Join(rep.Failure, rep.Write(c.env.Stdout, c.format))
}

func (c *renderCommand) renderPackage(ctx context.Context, dir string, rep *report.Report) (err error) {
	tree, plan, err := pipeline.ReadPlan(dir, pipeline.Options{AllowExec: c.allowExec, ImagePrefix: c.prefix})
	if err != nil {
		return c.failUnplanned(ctx, dir, tree, err)
	}
	progress := c.env.Progress()
	evaluator, err := c.gateway.Open(ctx, c.env, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, evaluator.Close()) }()
	renderer := &pipeline.Renderer{
		Evaluator: evaluator, Observer: progress, Timeout: c.gateway.Timeout, Jobs: c.jobs,
	}
	if c.explain.IsWanted() {
		renderer.Files = tree.Files
	}
	rendering, failure := renderer.Render(ctx, plan)
	if ctx.Err() != nil && failure != nil {
		return failure
	}
	rep.Tree = tree
	rep.Rendering = rendering
	err = errors.Join(c.results.write(c.env, rendering.Steps()),
		c.explain.WriteSteps(c.output.diffPrinter(c.env), dir, rendering, failure))
	if err != nil && failure == nil {
		return err
	}
	if failure != nil {
		return c.writeFailure(ctx, dir, tree, rendering, failure)
	}
	progress.Line("Ran %s in %s", ui.Count(len(rendering.Steps()), "function"), ui.Count(plan.Packages(), "package"))
	if rep.Changes, err = c.writeResult(ctx, dir, tree, rendering); err != nil || len(rep.Changes) == 0 {
		return err
	}
	err = fmt.Errorf("%s would change: run 'fnctl render %s', and commit the result",
		ui.Count(len(rep.Changes), "file"), dir)
	return command.WithCode(command.ExitChanges, err)
}
