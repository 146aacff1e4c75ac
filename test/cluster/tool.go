// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
)

// tools are built on demand only.
var tools = map[string]func() component.Component{
	"ko":       component.Ko,
	"kubectl":  component.Kubernetes,
	"skaffold": component.Skaffold,
}

func toolCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:       "tool ko|kubectl|skaffold",
		Short:     "Build a tool if need be and print the path of its program",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"ko", "kubectl", "skaffold"},
		RunE: func(command *cobra.Command, args []string) error {
			dir, err := o.store().Get(command.Context(), tools[args[0]]())
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), filepath.Join(dir, args[0]))
			return nil
		},
	}
}
