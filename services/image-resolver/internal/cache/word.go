package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// listener is the key of what hears from a fetch.
type listener struct{}

// Tell says how the fetch that ctx is for fares: it tries again after err. Those whose
// time is over before it ends get to hear that.
func Tell(ctx context.Context, err error) {
	if word, ok := ctx.Value(listener{}).(*atomic.Pointer[error]); ok {
		word.Store(&err)
	}
}

// unanswered is the error for somebody whose context ended with err before f did.
func (f *flight[V]) unanswered(err error) error {
	word := f.word.Load()
	if word == nil || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the answer was still being fetched: %w", err)
	}
	return fault.New(fault.Of(*word), "the answer was still being fetched, after this: %w", *word)
}

// heard adds to the error of a fetch that ran out of time what it told before.
func (f *flight[V]) heard(err error) error {
	word := f.word.Load()
	if word == nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w (before that: %w)", err, *word)
}
