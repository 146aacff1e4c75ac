package lease

import (
	"context"
	"errors"
	"sync"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// errStopping is why waits end early.
var errStopping = Elsewhere(fault.New(fault.Unavailable, "this pod-manager is shutting down: ask another replica"))

// stopper ends the context of a wait when the process is to stop.
type stopper struct {
	stopping, done <-chan struct{}
	cancel         context.CancelCauseFunc
	once           sync.Once
}

// untilStopping returns the context of a wait, and what ends it.
func (h *handler) untilStopping(ctx context.Context) (context.Context, *stopper) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stopper{stopping: h.stopping, done: ctx.Done(), cancel: cancel}
}

// watch looks out for the end of the process, from now on.
func (s *stopper) watch() {
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

// end ends the wait, and the watch with it.
func (s *stopper) end() { s.cancel(nil) }

// reason returns the error for the client of a wait that ended with err.
func reason(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStopping) {
		return errStopping
	}
	return err
}
