// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/teardown"
)

func downCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Take the cluster down, whatever state it is in, without a trace",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return o.down(command.Context()) },
	}
}

func (o *options) down(ctx context.Context) error {
	if err := needRoot(); err != nil {
		return err
	}
	l, unlock, err := o.lockCluster()
	if err != nil {
		return err
	}
	defer unlock()
	return teardown.Remove(ctx, l)
}
