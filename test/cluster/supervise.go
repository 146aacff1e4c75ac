// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/process"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/space"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// initCommand returns the hidden command `cluster init`, which runs as the first process in a cluster's namespaces.
func initCommand(o *options) *cobra.Command {
	var keep []string
	command := &cobra.Command{
		Use:    "init",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			l, err := o.layout()
			if err != nil {
				return err
			}
			supervisor := exec.CommandContext(command.Context(), "/proc/self/exe", "supervise", "--name", l.Name)
			supervisor.Stdout, supervisor.Stderr = os.Stdout, os.Stderr
			return space.Init(l, keep, supervisor)
		},
	}
	command.Flags().StringArrayVar(&keep, "keep", nil, "directory that is needed in the namespaces")
	return command
}

// superviseCommand returns the hidden command `cluster supervise`, which runs the cluster's programs.
func superviseCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:    "supervise",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(command *cobra.Command, _ []string) error { return o.supervise(command.Context()) },
	}
}

func (o *options) supervise(ctx context.Context) error {
	l, err := o.layout()
	if err != nil {
		return err
	}
	var specs []process.Spec
	if err := readJSON(specsFile(l), &specs); err != nil {
		return err
	}
	supervisor := process.Supervisor{Logs: l.Logs(), Holds: holdDirectory(l), Changed: func(status []process.Status) {
		if err := state.WriteJSON(statusFile(l), status); err != nil {
			fmt.Fprintln(os.Stderr, "keeping the components' status:", err)
		}
	}}
	supervisor.Run(ctx, specs)
	return nil
}

// specsFile returns the path of the file that lists the cluster's programs. statusFile returns the path of the file
// with the status of these programs.
func specsFile(l layout.Layout) string  { return l.Config("components.json") }
func statusFile(l layout.Layout) string { return l.Path("components.json") }

// holdDirectory returns the directory in which tests create files to prevent the start of programs. A file prevents the
// start of the program with the same name.
func holdDirectory(l layout.Layout) string { return l.Path("holds") }

func readJSON(path string, value any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the components: %w", err)
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fmt.Errorf("read the components in %s: %w", path, err)
	}
	return nil
}
