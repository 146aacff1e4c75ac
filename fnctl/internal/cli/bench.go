// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/bench"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

const benchHelp = `Bench measures how long evaluations of one function take, for lists of several sizes. The lists
are of Deployments that it makes, or the ResourceList in FILE. The function's configuration is
a ConfigMap of the key=value pairs after '--', or the kind that is named before them.

With --callers each caller waits for its answer before it calls again (closed loop). With --rate evaluations begin
at random times, so many in a second, whether or not earlier ones were answered (open loop); latency then counts
from the time at which an evaluation was due, so a stall is seen by all evaluations that it delays. With --burst all
callers evaluate once, at the same moment.

Several targets take turns, in a new order in each round. The first one is what the others are compared with: the
ratio, and the bounds that it is within with a confidence of 95 percent. Between two turns all targets rest for
--settle. A target shell:COMMAND is a loop in a shell for each caller, as fast as it can, whose output is discarded.`

const benchExamples = `  # Measure a gateway with 1, 2, 4 and 8 callers
  fnctl bench --image set-namespace:v0.4.5 --callers 1,2,4,8 -- namespace=shop
  # Compare it with the function's program on this machine
  fnctl bench --image set-namespace:v0.4.5 --target bare=exec:./set-namespace \
    --target gateway=localhost:9445 -- namespace=shop
  # Compare 8 callers with 8 shells that start the program in a loop
  fnctl bench --image set-namespace:v0.4.5 --items 1 --callers 8 --target shells=shell:./set-namespace \
    --target gateway=localhost:9445 -- namespace=shop
  # See at which rate latency goes up
  fnctl bench list.yaml --image set-namespace:v0.4.5 --rate 20,50,100,200 --svg latency.svg`

// benchCommand is one call of fnctl bench.
type benchCommand struct {
	env             Environment
	gateway         gatewayFlags
	image, tag      string
	targets         []string
	items, callers  []int
	bursts          []int
	rates           []float64
	duration, turn  time.Duration
	warmUp, settle  time.Duration
	maxInFlight     int
	seed            uint64
	output, svgFile string
}

func newBench(env Environment) *cobra.Command {
	c := &benchCommand{env: env}
	cmd := &cobra.Command{
		Use:     "bench [FILE] --image IMAGE [-- [KIND] KEY=VALUE...]",
		Short:   "Measure how long evaluations take",
		Long:    benchHelp,
		Example: benchExamples,
		Args:    oneTarget("FILE with a ResourceList; arguments of the function go behind --"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var pairs []string
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args, pairs = args[:dash], args[dash:]
			}
			inputs, err := c.inputs(args, pairs)
			if err = errors.Join(err, c.check(cmd)); err != nil {
				return usageError{cmd.CommandPath(), err}
			}
			return c.run(cmd.Context(), inputs)
		},
	}
	c.gateway.registerAddress(cmd.Flags(), env)
	c.gateway.registerLimits(cmd.Flags())
	c.register(cmd)
	return cmd
}

func (c *benchCommand) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&c.image, "image", "i", "", "image of the function")
	flags.StringVar(&c.tag, "tag", "", "tag of the image, or a version constraint")
	flags.StringArrayVar(&c.targets, "target", nil,
		"what to measure, as NAME=ADDRESS of a gateway, NAME=exec:PROGRAM or NAME=shell:COMMAND; may be repeated; "+
			"by default --address")
	flags.IntSliceVar(&c.items, "items", []int{1, 200, 2000}, "numbers of resources in the lists")
	flags.IntSliceVar(&c.callers, "callers", nil, "numbers of callers at a time; by default 1 if there is no other load")
	flags.Float64SliceVar(&c.rates, "rate", nil, "rates of evaluations in a second")
	flags.IntSliceVar(&c.bursts, "burst", nil, "numbers of callers at the same moment, once in each turn")
	flags.DurationVar(&c.duration, "duration", 30*time.Second, "about how long each list is measured with each load")
	flags.DurationVar(&c.turn, "turn", time.Second, "how long a target is measured before the next one")
	flags.DurationVar(&c.warmUp, "warm-up", 2*time.Second,
		"how long each target is called with a list and a load before anything counts; 0 for not at all")
	flags.DurationVar(&c.settle, "settle", 200*time.Millisecond, "rest before each turn, in which no target is called")
	flags.IntVar(&c.maxInFlight, "max-in-flight", 1000, "with --rate: most evaluations at a time; others wait")
	flags.Uint64Var(&c.seed, "seed", 1, "decides the order of turns, and when evaluations are due with --rate")
	flags.StringVarP(&c.output, "output", "o", "", "json for all figures")
	flags.StringVar(&c.svgFile, "svg", "", "write a picture of latency against load to this file")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{asJSON},
		cobra.ShellCompDirectiveNoFileComp))
}

func (c *benchCommand) run(ctx context.Context, inputs []bench.Input) error {
	targets, stop, err := c.open(ctx)
	defer stop()
	if err != nil {
		return err
	}
	progress := c.env.progress()
	levels, err := bench.Run(ctx, bench.Plan{
		Targets: targets, Inputs: inputs, Loads: c.loads(), Duration: c.duration, Turn: c.turn, WarmUp: c.warmUp,
		Settle: c.settle, MaxInFlight: c.maxInFlight, Seed: c.seed,
		Progress: func(what string) { progress.Line("measuring %s", what) },
	})
	if err != nil {
		if _, failed := errors.AsType[*client.FunctionError](err); failed {
			progress.Line("%s", ui.Printable(err.Error()))
		}
		return err
	}
	return c.report(bench.Report{Machine: bench.ThisMachine(), Image: c.image, Seed: c.seed, Levels: levels})
}

// loads returns the closed loops, then the open ones, then bursts.
func (c *benchCommand) loads() []bench.Load {
	var loads []bench.Load
	for _, n := range c.callers {
		loads = append(loads, bench.Load{Callers: n})
	}
	for _, rate := range c.rates {
		loads = append(loads, bench.Load{Rate: rate})
	}
	for _, n := range c.bursts {
		loads = append(loads, bench.Load{Burst: n})
	}
	if len(loads) == 0 {
		return []bench.Load{{Callers: 1}}
	}
	return loads
}

// report writes the report, and returns an error if evaluations failed.
func (c *benchCommand) report(report bench.Report) error {
	if c.svgFile != "" {
		//nolint:gosec // a picture is for others to read, as far as the umask permits
		if err := os.WriteFile(c.svgFile, []byte(report.SVG()), 0o644); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if err := c.print(report); err != nil {
		return err
	}
	for _, level := range report.Levels {
		for _, target := range level.Different {
			c.env.errPrinter().Line("%s: target %s returns another output than target %s",
				level.Input, target, level.Results[0].Target)
		}
	}
	if failed, all := report.Failed(); failed > 0 {
		return fmt.Errorf("%d of %d evaluations failed, the last one with: %s", failed, all, report.Failure())
	}
	return nil
}

// print writes the report to standard output, as text or JSON.
func (c *benchCommand) print(report bench.Report) error {
	text := report.Text()
	if c.output == asJSON {
		data, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		text = string(data) + "\n"
	}
	_, err := fmt.Fprint(c.env.Stdout, text)
	return err
}
