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

// syncTimeout is the maximum time that a caller waits until this replica knows all existing pods. The caller is then
// redirected to another replica with a complete list of pods.
const syncTimeout = 10 * time.Second

// obstacleInterval is the interval at which awaitSync queries the reason for the wait. If the reason changed, awaitSync
// reports it to the caller.
const obstacleInterval = 500 * time.Millisecond

// awaitSync waits until this replica knows all existing pods. It reports the reasons for the wait to the caller. It
// uses its own timeout, because it may not receive the deadline of a remote caller.
func (m *Manager) awaitSync(ctx context.Context, waiting func(*lease.Waiting)) error {
	select {
	case <-m.config.Synced:
		return nil
	default:
	}
	timeout := time.NewTimer(syncTimeoutOf(ctx))
	defer timeout.Stop()
	poll := time.NewTicker(obstacleInterval)
	defer poll.Stop()
	for reported := ""; ; {
		err := m.config.Obstacle()
		switch {
		case err == nil:
		case fault.Of(err) == fault.Precondition:
			return err // only a user can remove the cause
		case err.Error() != reported:
			reported = err.Error()
			waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED, Reason: reported})
		}
		select {
		case <-m.config.Synced:
			return nil
		case <-poll.C:
		case <-timeout.C:
			return lease.Elsewhere(cmp.Or(err,
				fault.New(fault.Unavailable, "the function pods have not been read from the Kubernetes API yet")))
		case <-ctx.Done():
			return fmt.Errorf("wait until the function pods have been read from the Kubernetes API: %w", ctx.Err())
		case <-m.ended:
			return errEnded()
		}
	}
}

// ignoreReports discards reports about a wait, for requests that cannot show them, such as a list of pools.
func ignoreReports(*lease.Waiting) {}

// syncTimeoutOf returns the timeout of awaitSync for a caller. It is shorter than the caller's deadline, so that the
// caller receives the error in time.
func syncTimeoutOf(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return syncTimeout
	}
	return min(syncTimeout, time.Until(deadline)*9/10)
}
