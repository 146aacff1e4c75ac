package lease

import (
	"context"
	"errors"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// errStopping is why waits end early.
var errStopping = fault.New(fault.Unavailable, "this pod-manager is shutting down: ask another replica")

// wait is something that goes on until it is done or the process is to stop.
type wait struct {
	ctx      context.Context //nolint:containedctx // lives no longer than the call
	cancel   context.CancelCauseFunc
	stopping <-chan struct{}
	once     sync.Once
}

func (h *handler) untilStopping(ctx context.Context) *wait {
	ctx, cancel := context.WithCancelCause(ctx)
	return &wait{ctx: ctx, cancel: cancel, stopping: h.stopping}
}

// watch has the wait's context end when the process is to stop, from now on.
func (w *wait) watch() {
	if w.stopping == nil {
		return
	}
	w.once.Do(func() {
		go func() {
			select {
			case <-w.stopping:
				w.cancel(errStopping)
			case <-w.ctx.Done():
			}
		}()
	})
}

// end ends the wait, and the watch with it.
func (w *wait) end() { w.cancel(nil) }

// reason returns the error for the client of a wait that ended with err.
func (w *wait) reason(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errStopping) {
		return errStopping
	}
	return err
}
