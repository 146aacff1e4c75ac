// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// UnderLoad calls the function do while concurrent callers evaluate functions. Each caller evaluates repeatedly, with a
// pause before each evaluation. UnderLoad returns the number of successful evaluations and the first error.
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
		defer close(done) // runs even if do calls t.FailNow
		do()
	}()
	err := load.Wait()
	return evaluations.Load(), err
}
