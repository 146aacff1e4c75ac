// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// UnderLoad runs a task while callers evaluate, each with a pause between two evaluations. It returns the number of
// evaluations, and the first error.
func UnderLoad(ctx context.Context, callers int, pause time.Duration,
	evaluate func(ctx context.Context, caller int) error, do func(),
) (int64, error) {
	var evaluations atomic.Int64
	done := make(chan struct{})
	var load errgroup.Group
	for number := range callers {
		load.Go(func() error {
			for {
				select {
				case <-done:
					return nil
				case <-time.After(pause):
				}
				if err := evaluate(ctx, number); err != nil {
					return fmt.Errorf("caller %d, after %d evaluations: %w", number, evaluations.Load(), err)
				}
				evaluations.Add(1)
			}
		})
	}
	func() {
		defer close(done) // runs even if the task ends the test
		do()
	}()
	err := load.Wait()
	return evaluations.Load(), err
}
