// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

const topHelp = `Top shows what the gateway does, and trouble first: lines with ! say what is wrong. Then come the
evaluations that wait, and the last failures: how many equal ones, who they are due to (function, caller or system),
and the reason. The table has a line for each function: evaluations per second, failures of the last minute, the
median and the 99th percentile of durations, ready pods, and evaluations that wait for a pod.

Rates, durations, failures and what evaluations wait for are those of one replica of the gateway, which the first
line names: fnctl is connected to one. To see another one, give the address of its pod, or of a port that
'kubectl port-forward' opens to it. Pods and the column QUEUE are those of all replicas.

On a terminal the screen is refreshed until you press Ctrl-C. Elsewhere each refresh is written below the
one before.`

const topExamples = `  # Show what the gateway does, live
  fnctl top
  # Show it once
  fnctl top --once
  # Find the slowest functions
  fnctl top --once -o json | jq '.status.functions | sort_by(.p99) | .[-3:] | .[].image'`

const (
	defaultInterval = 2 * time.Second
	minInterval     = 100 * time.Millisecond
	// allFailures is the number of failed evaluations that fnctl top requests. It exceeds the number that a gateway
	// stores, so that the gateway returns all of them.
	allFailures = 1000
)

// Escape sequences that show fnctl top on the alternate screen of a terminal, so that the earlier content of the
// terminal is restored afterwards. All terminals support them.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

type topCommand struct {
	env      command.Environment
	gateway  backend.Flags
	output   string
	once     bool
	interval time.Duration
}

// NewCommand returns the command fnctl top.
func NewCommand(env command.Environment) *cobra.Command {
	c := &topCommand{env: env}
	cmd := &cobra.Command{
		Use:     "top",
		Short:   "Show what the gateway does",
		Long:    topHelp,
		Example: topExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.check(); err != nil {
				return command.UsageError(cmd, err)
			}
			return c.run(cmd.Context())
		},
	}
	c.gateway.RegisterAddress(cmd.Flags(), env)
	cmd.Flags().BoolVar(&c.once, "once", false, "show it once")
	cmd.Flags().DurationVar(&c.interval, "interval", defaultInterval, "time between two refreshes")
	cmd.Flags().StringVarP(&c.output, "output", "o", "",
		"json for everything that the gateway reports, a line for each refresh")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{command.JSON},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *topCommand) check() error {
	if c.interval < minInterval {
		return fmt.Errorf("takes %v or more for --interval, got %v", minInterval, c.interval)
	}
	return command.CheckChoice("--output", c.output, command.JSON)
}

func (c *topCommand) run(ctx context.Context) error {
	gateway, err := c.gateway.NewClient(c.env)
	if err != nil {
		return err
	}
	defer gateway.Close()
	snapshot, err := takeSnapshot(ctx, gateway)
	if err != nil {
		return err
	}
	if c.once {
		fmt.Fprint(c.env.Stdout, c.formatSnapshot(snapshot, 0))
		return nil
	}
	c.followStatus(ctx, gateway, snapshot)
	return nil
}

// followStatus shows a new snapshot of the gateway's activity at each interval, until the user stops it. It
// continues after a failed query.
func (c *topCommand) followStatus(ctx context.Context, gateway *client.Gateway, snapshot Snapshot) {
	screen := command.IsTerminal(c.env.Stdout) && c.output == ""
	if screen {
		fmt.Fprint(c.env.Stdout, enterScreen)
		defer fmt.Fprint(c.env.Stdout, leaveScreen)
	}
	ticks := time.NewTicker(c.interval)
	defer ticks.Stop()
	for problem := error(nil); ; {
		c.showSnapshot(snapshot, problem, screen)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		next, err := takeSnapshot(ctx, gateway)
		if problem = err; err == nil {
			snapshot = next
		}
	}
}

// showSnapshot prints the gateway's activity, or the error of the latest query. If screen is true, it replaces the
// content of the terminal, and shows the error together with the last known activity.
func (c *topCommand) showSnapshot(snapshot Snapshot, problem error, screen bool) {
	switch {
	case screen:
		if problem != nil {
			snapshot.Problems = append(slices.Clone(snapshot.Problems), problem.Error())
		}
		_, height := command.TerminalSize(c.env.Stdout)
		text := c.formatSnapshot(snapshot, height-1)
		fmt.Fprint(c.env.Stdout, toTop+strings.ReplaceAll(text, "\n", clearLine+"\n")+clearBelow)
	case problem != nil:
		c.env.ErrPrinter().Line("fnctl: %s", ui.OneLine(problem.Error()))
	case c.output == command.JSON:
		fmt.Fprint(c.env.Stdout, c.formatSnapshot(snapshot, 0))
	default:
		fmt.Fprint(c.env.Stdout, c.formatSnapshot(snapshot, 0)+"\n")
	}
}

// formatSnapshot returns the gateway's activity as JSON or as text. height limits the lines of text. 0 means no limit.
func (c *topCommand) formatSnapshot(snapshot Snapshot, height int) string {
	if c.output == command.JSON {
		return fmt.Sprintf(`{"status":%s,"pods":%s,"failures":%s,"problems":%s}`+"\n", ui.JSON(snapshot.Status, ""),
			ui.JSON(&podmanagerv1.ListPoolsResponse{Pools: snapshot.Pools}, ""),
			ui.JSON(&gatewayv1.ListEvaluationsResponse{Evaluations: snapshot.Failures}, ""), problemsJSON(snapshot.Problems))
	}
	width, _ := command.TerminalSize(c.env.Stdout)
	return strings.Join(snapshot.Lines(width, height), "\n") + "\n"
}

func problemsJSON(texts []string) string {
	list, _ := json.Marshal(append([]string{}, texts...)) // never fails for strings
	return ui.EscapeJSON(string(list))
}

// poolsTimeout is the timeout for the list of function pods. The gateway queries all pod-managers for the list. Without
// the timeout, a hanging pod-manager would stop the display.
const poolsTimeout = 3 * time.Second

// takeSnapshot queries the gateway's current activity for fnctl top. If the query for function pods fails, the snapshot
// contains the error instead of pods. If the gateway runs no function pods, the snapshot contains neither.
func takeSnapshot(ctx context.Context, gateway *client.Gateway) (Snapshot, error) {
	snapshot := Snapshot{Now: time.Now()}
	var err error
	if snapshot.Status, err = gateway.Status(ctx); err != nil {
		return snapshot, err
	}
	failed := &gatewayv1.ListEvaluationsRequest{Failed: true, Max: allFailures}
	if snapshot.Failures, err = gateway.Evaluations(ctx, failed); err != nil {
		return snapshot, err
	}
	limited, cancel := context.WithTimeout(ctx, poolsTimeout)
	defer cancel()
	list, err := gateway.ListPools(limited)
	if err != nil && !client.IsUnimplemented(err) {
		snapshot.Problems = append(snapshot.Problems, ui.OneLine(err.Error()))
	}
	snapshot.Pools = list.GetPools()
	snapshot.Problems = append(snapshot.Problems, list.GetProblems()...)
	return snapshot, ctx.Err()
}
