// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// take calls a target for one turn. Evaluations that nothing is measured of come first, one for each
// caller: another target had the machine before.
func (p Plan) take(
	ctx context.Context, target Target, list []byte, load Load, length time.Duration, rng *rand.Rand, to *recorder,
) error {
	evaluate := func() error {
		_, err := target.Evaluate(ctx, list)
		return err
	}
	var first sync.WaitGroup
	for range max(load.Callers, 1) {
		first.Go(func() { _ = evaluate() }) // one that fails is counted when it is repeated
	}
	first.Wait()
	if load.Rate > 0 {
		due := arrivals(rng, load.Rate, length)
		open(ctx, due, p.MaxInFlight, evaluate, to)
	} else {
		closed(ctx, load.Callers, length, evaluate, to)
	}
	return ctx.Err()
}

// closed has callers evaluate for a time, each one evaluation after the other, and at least one.
func closed(ctx context.Context, callers int, length time.Duration, evaluate func() error, to *recorder) {
	start := time.Now()
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for {
				began := time.Now()
				err := evaluate()
				to.add(time.Since(began), err)
				if time.Since(start) >= length || ctx.Err() != nil {
					return
				}
			}
		})
	}
	calling.Wait()
	to.took = time.Since(start)
}

// open begins an evaluation at each time that one is due. Latencies count from that time, not
// from when the evaluation really began: a target that stalls would otherwise delay the very
// evaluations that show it (coordinated omission).
func open(ctx context.Context, due []time.Duration, maxInFlight int, evaluate func() error, to *recorder) {
	start := time.Now()
	slots := make(chan struct{}, maxInFlight)
	var running sync.WaitGroup
	for _, at := range due {
		intended := start.Add(at)
		if !waitUntil(ctx, intended) {
			break
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		running.Go(func() {
			err := evaluate()
			to.add(time.Since(intended), err)
			<-slots
		})
	}
	running.Wait()
	to.took = time.Since(start)
}

// waitUntil waits until a time, and reports whether ctx has not ended before.
func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
