// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// takeTurn measures a target for the given time. Before the measurement, each caller evaluates once to warm up the
// target, which was idle during the turns of other targets.
func (p Plan) takeTurn(
	ctx context.Context, target Target, list []byte, load Load, length time.Duration, rng *rand.Rand, to *recorder,
) error {
	if !waitUntil(ctx, time.Now().Add(p.Settle)) {
		return ctx.Err()
	}
	evaluate := func() error {
		_, err := target.Evaluate(ctx, list)
		return err
	}
	runTogether(max(load.Callers, 1), func() { _ = evaluate() }) // ignore errors: the turn counts permanent failures
	var due []time.Duration
	if load.Rate > 0 {
		due = scheduleArrivals(rng, load.Rate, length)
	}
	start, used := time.Now(), processorTime()
	switch {
	case load.Rate > 0:
		runOpen(ctx, due, p.MaxInFlight, evaluate, to)
	default:
		runClosed(ctx, load.Callers, length, target.callerLoop(ctx, list), to)
	}
	to.took = time.Since(start)
	to.client = processorTime() - used
	return ctx.Err()
}

// runTogether calls the function do n times, concurrently, and waits until all calls have returned.
func runTogether(n int, do func()) {
	var running sync.WaitGroup
	for range n {
		running.Go(do)
	}
	running.Wait()
}

// callerLoop returns a function that runs the evaluations of a caller, one after another.
func (t Target) callerLoop(ctx context.Context, list []byte) func(each func(error) bool) {
	return func(each func(error) bool) {
		if t.Loop != nil {
			t.Loop(ctx, list, each)
			return
		}
		for more := true; more; {
			_, err := t.Evaluate(ctx, list)
			more = each(err)
		}
	}
}

// runClosed runs concurrent callers. Each caller evaluates repeatedly for the duration length, but at least once.
func runClosed(ctx context.Context, callers int, length time.Duration, loop func(func(error) bool), to *recorder) {
	start := time.Now()
	runTogether(callers, func() {
		began := time.Now()
		loop(func(err error) bool {
			now := time.Now()
			to.recordEvaluation(now.Sub(began), err)
			began = now
			return now.Sub(start) < length && ctx.Err() == nil
		})
	})
}

// runOpen starts evaluations at fixed times, and measures latency from these times. If an evaluation starts late, its
// latency therefore includes the delay. Otherwise, a target that stalls would delay the evaluations that reveal the
// stall, and look faster than it is (coordinated omission).
func runOpen(ctx context.Context, due []time.Duration, maxInFlight int, evaluate func() error, to *recorder) {
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
			to.recordEvaluation(time.Since(intended), err)
			<-slots
		})
	}
	running.Wait()
}

// waitUntil waits until the given time. It returns false if ctx ends earlier.
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
