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

// killTimeout bounds the kernel's clean-up after killed processes.
const killTimeout = 20 * time.Second

// Remove ends the cluster's processes and removes all that is left of it. With nothing left it does
// nothing.
func Remove(ctx context.Context, l layout.Layout) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	// With the first process of their namespace the kernel kills all its processes, and after the last process the
	// mounts and the network disappear. Without a readable state, the control groups list the processes.
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

// removeParents removes the parent directories of clusters if no other cluster uses them.
func removeParents() {
	for _, dir := range []string{layout.Root(), filepath.Dir(layout.Root())} {
		_ = os.Remove(dir) // may contain other entries
	}
}
