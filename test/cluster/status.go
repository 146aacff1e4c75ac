// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/process"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// status is the output of `cluster status`.
type status struct {
	bed.Info
	State      string           `json:"state"`
	Components []process.Status `json:"components"`
}

func statusCommand(o *options) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Print the cluster's state and how to use it; fail if it is not ready",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"text", "json"}, output) {
				return fmt.Errorf("output %q: want text or json", output)
			}
			now, err := o.status()
			if err != nil {
				return err
			}
			return errors.Join(now.write(command.OutOrStdout(), output), now.verdict())
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json; json has the registries' passwords")
	return command
}

func (o *options) status() (status, error) {
	l, err := o.layout()
	if err != nil {
		return status{}, err
	}
	running, err := state.Load(l)
	if err != nil {
		return status{}, err
	}
	now := status{Info: describeCluster(l, running), State: starting}
	// Ignore a missing status file, because it may not exist shortly after a cluster's start.
	if err := readJSON(statusFile(l), &now.Components); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return status{}, err
	}
	switch {
	case !running.Init.Alive():
		now.State = dead
		for i := range now.Components {
			now.Components[i].State = dead
			now.Components[i].PID = 0
		}
	case running.Ready:
		now.State = ready
	}
	return now, nil
}

// States of a cluster.
const (
	starting = "starting"
	ready    = "ready"
	dead     = "dead"
)

// verdict returns an error unless the cluster is ready, so that scripts can check the exit status.
func (s status) verdict() error {
	if s.State == ready {
		return nil
	}
	return fmt.Errorf("cluster %s is %s: bring it up", s.Name, s.State)
}

func (s status) write(out io.Writer, output string) error {
	if output == "text" {
		return s.print(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

func (s status) print(out io.Writer) error {
	fmt.Fprintf(out, "cluster %s is %s\nkubeconfig %s\nlogs in    %s\n\n", s.Name, s.State, s.Kubeconfig, s.Logs)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REGISTRY\tHOST\tUSER\tAUTHORITY")
	for _, registry := range s.Registries {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", registry.Name, registry.Host, registry.Username, registry.CAFile)
	}
	fmt.Fprintln(table, "\nCOMPONENT\tSTATE\tRESTARTS\tLAST EXIT")
	for _, component := range s.Components {
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", component.Name, component.State, component.Restarts, component.LastExit)
	}
	return table.Flush()
}
