// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// errStopping is the error of leases and watches that still wait when the pod-manager shuts down.
var errStopping = Elsewhere(fault.New(fault.Unavailable, "this pod-manager is shutting down: call another replica"))

// stopper cancels the context of a waiting RPC when the process shuts down.
type stopper struct {
	stopping, done <-chan struct{}
	cancel         context.CancelCauseFunc
	once           sync.Once
}

// untilStopping returns a context for a waiting RPC, and a stopper whose method watchStop cancels it at shutdown.
func (h *handler) untilStopping(ctx context.Context) (context.Context, *stopper) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stopper{stopping: h.stopping, done: ctx.Done(), cancel: cancel}
}

// watchStop starts, at its first call, a goroutine that cancels the wait when the process shuts down.
func (s *stopper) watchStop() {
	if s.stopping == nil {
		return
	}
	s.once.Do(func() {
		go func() {
			select {
			case <-s.stopping:
				s.cancel(errStopping)
			case <-s.done:
			}
		}()
	})
}

// stopWatching cancels the context of the wait, and thereby ends the goroutine of watchStop.
func (s *stopper) stopWatching() { s.cancel(nil) }

// waitError returns the error for a client whose wait failed with err. It returns errStopping if the shutdown of
// the process interrupted the wait, and otherwise err.
func waitError(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return errStopping
	}
	return err
}
