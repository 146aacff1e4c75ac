package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// syncPatience is how long a caller waits for the list of pods when the program has
// just started. If the Kubernetes API takes longer, another replica may know it.
const syncPatience = 10 * time.Second

// synced waits until the manager knows which pods there are.
func (m *Manager) synced(ctx context.Context) error {
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
	select {
	case <-m.config.Synced:
		return nil
	case <-patience.C:
		return m.unsynced()
	case <-ctx.Done():
		return fmt.Errorf("wait until the Kubernetes API says which function pods there are: %w", ctx.Err())
	case <-m.ended:
		return errEnded()
	}
}

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
