// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/bundle"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func porchCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "porch",
		Short: "Build Porch and push the images of its programs as porch/NAME",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			l, running, err := o.suppliedCluster()
			if err != nil {
				return err
			}
			return o.pushPorch(command.Context(), l, running)
		},
	}
}

// pushPorch builds Porch and pushes the images of its programs to the registry without credentials.
func (o *options) pushPorch(ctx context.Context, l layout.Layout, running state.State) error {
	porch, err := component.Porch(o.root)
	if err != nil {
		return err
	}
	dir, err := o.store().Get(ctx, porch)
	if err != nil {
		return err
	}
	applets, err := o.imageSource().Program(ctx, "wrapper-server", ".")
	if err != nil {
		return err
	}
	specs := bundle.Porch(dir, applets)
	images, err := o.builder().BuildAll(ctx, specs)
	if err != nil {
		return err
	}
	registry, err := openRegistry(ctx, l, running)
	if err != nil {
		return err
	}
	return pushTo(ctx, registry, specs, images)
}
