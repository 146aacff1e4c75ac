// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// syncTimeout is how long a caller waits for the list of pods when the program has just started. If the Kubernetes
// API takes longer, another replica may know it.
const syncTimeout = 10 * time.Second

// obstacleInterval is the time between two checks of what keeps a caller waiting.
const obstacleInterval = 500 * time.Millisecond

// awaitSync waits until the manager knows which pods there are, and reports what keeps it from that: how long a caller
// elsewhere waits is not known.
func (m *Manager) awaitSync(ctx context.Context, waiting func(*lease.Waiting)) error {
	timeout := time.NewTimer(syncTimeoutOf(ctx))
	defer timeout.Stop()
	poll := time.NewTicker(obstacleInterval)
	defer poll.Stop()
	for reported := ""; ; {
		select {
		case <-m.config.Synced:
			return nil
		default:
		}
		err := m.config.Obstacle()
		switch {
		case err == nil:
		case fault.Of(err) == fault.Precondition:
			return err // waiting longer is of no use
		case err.Error() != reported:
			reported = err.Error()
			waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED, Reason: reported})
		}
		select {
		case <-m.config.Synced:
		case <-poll.C:
		case <-timeout.C:
			return lease.Elsewhere(cmp.Or(err,
				fault.New(fault.Unavailable, "the Kubernetes API has not said yet which function pods there are")))
		case <-ctx.Done():
			return fmt.Errorf("wait until the Kubernetes API says which function pods there are: %w", ctx.Err())
		case <-m.ended:
			return errEnded()
		}
	}
}

// ignoreReports ignores reports.
func ignoreReports(*lease.Waiting) {}

// syncTimeoutOf is how long a caller is kept waiting: it is to hear what is in the way while it still listens.
func syncTimeoutOf(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return syncTimeout
	}
	return min(syncTimeout, time.Until(deadline)*9/10)
}
