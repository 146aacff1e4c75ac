// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/evidence"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

func evidenceCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "evidence DIRECTORY",
		Short: "Keep logs, objects, processes and mounts of the cluster, however far it came",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := needRoot(); err != nil {
				return err
			}
			l, err := o.layout()
			if err != nil {
				return err
			}
			if _, err := os.Stat(l.Dir()); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cluster %s: %w", l.Name, state.ErrNone)
			}
			collectEvidence(command.Context(), command.ErrOrStderr(), l, args[0])
			return nil
		},
	}
}

// collectEvidence saves the cluster's logs, objects and process state to dir, for the analysis of a failure. It
// logs the path of dir, and the parts that could not be collected.
func collectEvidence(ctx context.Context, log io.Writer, l layout.Layout, dir string) {
	if err := evidence.Collect(ctx, l, dir); err != nil {
		fmt.Fprintf(log, "the evidence is not complete: %v\n", err)
	}
	fmt.Fprintf(log, "evidence of cluster %s is in %s\n", l.Name, dir)
}

// evidenceDir returns the directory for logs and other state of a cluster that `cluster up` failed to start.
func (o *options) evidenceDir(l layout.Layout) string {
	dir := filepath.Join(o.root, ".build", "e2e", l.Name, "cluster")
	if absolute, err := filepath.Abs(dir); err == nil {
		return absolute
	}
	return dir
}
