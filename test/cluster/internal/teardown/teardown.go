// SPDX-License-Identifier: Apache-2.0

// Package teardown removes a cluster, whatever state it is in.
package teardown

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/cgroup"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
	"github.com/krm-function-runner/function-runner/test/cluster/internal/state"
)

// killTimeout is the timeout for the exit of killed processes and the removal of their control groups.
const killTimeout = 20 * time.Second

// Remove kills the cluster's processes and removes its control groups and files, if any of them exist.
func Remove(ctx context.Context, l layout.Layout) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	// End the cluster's first process, and thereby its processes, mounts and networks. If the state file cannot be
	// read, the later removal of the control groups kills the processes.
	running, _ := state.Load(l)
	if err := running.Init.Kill(ctx); err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	if err := cgroup.Remove(l.Cgroup(), deadline); err != nil {
		return err
	}
	if err := os.RemoveAll(l.Dir()); err != nil {
		return fmt.Errorf("remove the files of cluster %s: %w", l.Name, err)
	}
	removeParents()
	return nil
}

// removeParents removes the parent directories of the cluster's directory if they are empty.
func removeParents() {
	for _, dir := range []string{layout.Root(), filepath.Dir(layout.Root())} {
		_ = os.Remove(dir) // fails if not empty
	}
}
