// SPDX-License-Identifier: Apache-2.0

// Package teardown removes a cluster in any state, even if it was only partly started.
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

// killTimeout is the timeout for killed processes to exit and their control groups to be removed.
const killTimeout = 20 * time.Second

// Remove kills the cluster's processes, and removes its control groups and files. It skips parts that do not exist.
func Remove(ctx context.Context, l layout.Layout) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	// Kill the cluster's first process. The kernel then also ends all processes, mounts and networks in its namespaces. If
	// the state file is not readable, the first process is unknown, and cgroup.Remove kills all processes.
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

// removeParents removes the parents of the cluster's directory if they are empty.
func removeParents() {
	for _, dir := range []string{layout.Root(), filepath.Dir(layout.Root())} {
		_ = os.Remove(dir) // fails if not empty
	}
}
