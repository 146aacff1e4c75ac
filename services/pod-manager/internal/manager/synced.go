package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// syncPatience is how long a caller waits for the list of pods when the program has
// just started. If the Kubernetes API takes longer, another replica may know it.
const syncPatience = 10 * time.Second

// obstacleInterval is the time between two looks at what keeps a caller waiting.
const obstacleInterval = 500 * time.Millisecond

// synced waits until the manager knows which pods there are, and reports what keeps it
// from that: a caller elsewhere does not tell how long it waits.
func (m *Manager) synced(ctx context.Context, waiting func(*lease.Waiting)) error {
	select {
	case <-m.config.Synced:
		return nil
	default:
	}
	if err := m.config.Obstacle(); refused(err) {
		return err
	}
	patience := time.NewTimer(patienceOf(ctx))
	defer patience.Stop()
	look := time.NewTicker(obstacleInterval)
	defer look.Stop()
	for told := ""; ; {
		select {
		case <-m.config.Synced:
			return nil
		case <-look.C:
			err := m.config.Obstacle()
			if refused(err) {
				return err
			}
			if err != nil && err.Error() != told {
				told = err.Error()
				waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED, Reason: told})
			}
		case <-patience.C:
			return m.unsynced()
		case <-ctx.Done():
			return fmt.Errorf("wait until the Kubernetes API says which function pods there are: %w", ctx.Err())
		case <-m.ended:
			return errEnded()
		}
	}
}

// unheard is for those who want no reports.
func unheard(*lease.Waiting) {}

// patienceOf is how long a caller is kept waiting: it is to hear what is in the way while
// it still listens.
func patienceOf(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return syncPatience
	}
	return min(syncPatience, time.Until(deadline)*9/10)
}

// unsynced is why a caller waited in vain.
func (m *Manager) unsynced() error {
	err := m.config.Obstacle()
	switch {
	case err == nil:
		err = fault.New(fault.Unavailable, "the Kubernetes API has not said yet which function pods there are")
	case refused(err):
		return err
	}
	return lease.Elsewhere(err)
}

// refused says whether waiting longer is of no use.
func refused(err error) bool { return err != nil && fault.Of(err) == fault.Precondition }
