// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// errStopping is the error of waits that the shutdown of the pod-manager interrupts.
var errStopping = Elsewhere(fault.New(fault.Unavailable, "this pod-manager is shutting down: call another replica"))

// stopper cancels the context of a wait when the process stops.
type stopper struct {
	stopping, done <-chan struct{}
	cancel         context.CancelCauseFunc
	once           sync.Once
}

// untilStopping returns the context of a wait, and the stopper that cancels it.
func (h *handler) untilStopping(ctx context.Context) (context.Context, *stopper) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stopper{stopping: h.stopping, done: ctx.Done(), cancel: cancel}
}

// watchStop starts to watch for the shutdown of the process.
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

// stopWatching cancels the wait and stops watching the process.
func (s *stopper) stopWatching() { s.cancel(nil) }

// waitError returns the error for the client whose wait failed with err: errStopping if the shutdown interrupted the
// wait, and otherwise err.
func waitError(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return errStopping
	}
	return err
}
