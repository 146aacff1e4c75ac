// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/build/images/release"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/component"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func previousCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "previous COMMIT",
		Short: "Build the project's own programs as of a commit and push them as previous/NAME, for tests of upgrades",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			l, running, err := o.suppliedCluster()
			if err != nil {
				return err
			}
			return o.pushPrevious(command.Context(), command.ErrOrStderr(), l, running, args[0])
		},
	}
}

func (o *options) pushPrevious(ctx context.Context, log io.Writer, l layout.Layout, running state.State,
	commit string,
) error {
	sources, err := o.store().Get(ctx, component.Sources(o.root, commit))
	if err != nil {
		return err
	}
	previous := *o
	previous.root = sources
	return previous.pushPrograms(ctx, log, l, running, "previous", release.Programs())
}
