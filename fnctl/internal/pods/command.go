// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/fnctl/internal/backend"
	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

const podsHelp = `Pods shows the function pods that the gateway's pod-manager has: those of all
functions, or of those whose image contains TEXT.

A function without a pod has the state Resolving while its image is looked up, and
Queued while others have all the pods that there may be.

LOAD is how many evaluations run in a pod and how many may, WAITING how many wait for a
lease of one of the function's pods, and TTL how long the pod lives on without use. The reason why
a pod is not ready is on lines of its own, three at most on a terminal. '-o wide' has all of it, the whole image,
the node, and as OWNER the replica of the pod-manager that creates and deletes the function's pods.`

const podsExamples = `  # Show all function pods
  fnctl pods

  # Show those of one function, and what becomes of them
  fnctl pods set-namespace --watch
  # Show on which nodes they are
  fnctl pods -o wide
  # Count the pods that are ready
  fnctl pods -o json | jq '[.pools[].pods[]? | select(.state == "STATE_READY")] | length'`

// asWide is the value of --output that selects a table with all columns. The default is a narrow table.
const asWide = "wide"

type podsCommand struct {
	env     command.Environment
	gateway backend.Flags
	output  string
	watch   bool
	text    string
}

// NewCommand returns the command fnctl pods.
func NewCommand(env command.Environment) *cobra.Command {
	c := &podsCommand{env: env}
	cmd := &cobra.Command{
		Use:     "pods [TEXT]",
		Short:   "Show function pods",
		Long:    podsHelp,
		Example: podsExamples,
		Args:    command.OneTarget("a part of an image's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := command.CheckChoice("--output", c.output, asWide, command.JSON); err != nil {
				return command.UsageError(cmd, err)
			}
			c.text = strings.Join(args, "")
			return c.run(cmd.Context())
		},
	}
	c.gateway.RegisterAddress(cmd.Flags(), env)
	cmd.Flags().BoolVarP(&c.watch, "watch", "w", false, "go on, and show what changes")
	cmd.Flags().StringVarP(&c.output, "output", "o", "",
		"wide for all columns; json for everything that the pod-manager reports, a line for each change with --watch")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{asWide, command.JSON},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *podsCommand) run(ctx context.Context) error {
	gateway, err := c.gateway.NewClient(c.env)
	if err != nil {
		return err
	}
	defer gateway.Close()
	if c.watch {
		return c.followPools(ctx, gateway)
	}
	list, err := gateway.ListPools(ctx)
	if err != nil {
		return err
	}
	c.showPools(list)
	return nil
}

// showPools prints the pools that the user selected, as JSON or as a table.
func (c *podsCommand) showPools(list *podmanagerv1.ListPoolsResponse) {
	selected := &podmanagerv1.ListPoolsResponse{Problems: list.GetProblems()}
	for _, pool := range list.GetPools() {
		if c.isSelected(pool.GetKey()) {
			selected.Pools = append(selected.Pools, pool)
		}
	}
	out := c.env.OutPrinter()
	if c.output == command.JSON {
		out.Line("%s", ui.JSON(selected, "  "))
		return
	}
	var rows []Row
	for _, pool := range selected.GetPools() {
		rows = append(rows, Rows(pool, time.Now())...)
	}
	if len(rows) == 0 {
		c.env.ErrPrinter().Line("no function pods")
		return
	}
	printRows(out, c.newTable(), append([]Row{Header}, rows...))
}

// followPools prints all function pods and then each change of a pod. It returns nil when the user stops the command.
func (c *podsCommand) followPools(ctx context.Context, gateway *client.Gateway) error {
	out, table, changes := c.env.OutPrinter(), c.newTable(), &Changes{}
	rows := []Row{Header} // stored until the gateway has sent all pools, so that the columns fit
	synced := false
	err := gateway.WatchPools(ctx, func(change *podmanagerv1.WatchPoolsResponse) error {
		synced = synced || change.GetSynced() != nil
		switch {
		case !c.isSelected(change.GetPool().GetKey()) && !c.isSelected(change.GetRemoved()):
		case c.output == command.JSON:
			out.Line("%s", ui.JSON(change, ""))
		default:
			rows = append(rows, changes.Of(change, time.Now())...)
		}
		if synced && c.output != command.JSON {
			printRows(out, table, rows)
			rows = nil
		}
		return nil
	})
	if ctx.Err() == nil {
		return err
	}
	return nil
}

func (c *podsCommand) newTable() *Table {
	width, _ := command.TerminalSize(c.env.Stdout)
	return &Table{Wide: c.output == asWide, Width: width}
}

func (c *podsCommand) isSelected(k *podmanagerv1.PoolKey) bool {
	return k != nil && strings.Contains(k.GetReference()+"@"+k.GetDigest(), c.text)
}

// printRows prints rows of the table of pods. It first makes the columns wide enough for all rows.
func printRows(out *ui.Printer, table *Table, rows []Row) {
	for _, row := range rows {
		table.Fit(row)
	}
	for _, row := range rows {
		for _, line := range table.Lines(row) {
			out.Line("%s", ui.OneLine(line))
		}
	}
}
