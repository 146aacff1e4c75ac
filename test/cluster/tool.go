// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
)

// tools maps each program of `cluster tool` to a function that returns the component with this program.
func (o *options) tools() map[string]func() (component.Component, error) {
	always := func(pinned func() component.Component) func() (component.Component, error) {
		return func() (component.Component, error) { return pinned(), nil }
	}
	return map[string]func() (component.Component, error){
		"ko":        always(component.Ko),
		"kubectl":   always(component.Kubernetes),
		"kustomize": always(component.Kustomize),
		"porch":     func() (component.Component, error) { return component.Porch(o.root) },
		"skaffold":  always(component.Skaffold),
	}
}

func toolCommand(o *options) *cobra.Command {
	names := slices.Sorted(maps.Keys(o.tools()))
	return &cobra.Command{
		Use:       "tool " + strings.Join(names, "|"),
		Short:     "Build a tool if need be and print the path of its program",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: names,
		RunE: func(command *cobra.Command, args []string) error {
			tool, err := o.tools()[args[0]]()
			if err != nil {
				return err
			}
			dir, err := o.store().Get(command.Context(), tool)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), filepath.Join(dir, args[0]))
			return nil
		},
	}
}
