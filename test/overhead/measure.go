// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// times contains the measured times of a program, such as the gateway.
type times struct {
	evaluations []time.Duration
	// cpu is the processor time of all calls. Unlike evaluations, it includes the first call of each turn.
	cpu   time.Duration
	calls int // number of calls in cpu
}

// measure returns the times of each measured program, by name. It measures the programs in turns, in a random order
// in each round, so that changes of the machine's speed affect all programs. Only a single program runs at a time,
// so that its background work, such as starting processes, does not slow down the next.
func (b *bench) measure(ctx context.Context, ways []way, list []byte, callers int) (map[string]times, error) {
	all := map[string]times{}
	end := time.Now().Add(b.budget)
	for round := 0; round < 2 || time.Now().Before(end); round++ {
		for _, i := range rand.Perm(len(ways)) {
			w := ways[i]
			got, err := timeTurn(w, func() ([]time.Duration, error) { return takeTurn(ctx, w, list, callers, b.block) })
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			sum := all[w.name]
			sum.evaluations = append(sum.evaluations, got.evaluations...)
			sum.cpu += got.cpu
			sum.calls += len(got.evaluations) + callers
			all[w.name] = sum
		}
	}
	return all, nil
}

// timeTurn calls turn and measures the processor time of its evaluations, including the server's time.
func timeTurn(w way, turn func() ([]time.Duration, error)) (times, error) {
	before, err := processorTime(w.pid)
	if err != nil {
		return times{}, err
	}
	evaluations, err := turn()
	if err != nil {
		return times{}, err
	}
	after, err := processorTime(w.pid)
	return times{evaluations: evaluations, cpu: after - before}, err
}

// takeTurn runs callers that evaluate repeatedly for the given time. It returns the durations of their evaluations
// except for the first of each caller, which is slower because the machine was idle before it.
func takeTurn(ctx context.Context, w way, list []byte, callers int, length time.Duration) ([]time.Duration, error) {
	var mu sync.Mutex
	var times []time.Duration
	var failure error
	end := time.Now().Add(length)
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			own, err := callInTurn(ctx, w, list, end)
			mu.Lock()
			defer mu.Unlock()
			times = append(times, own...)
			if err != nil {
				failure = err
			}
		})
	}
	running.Wait()
	return times, failure
}

// callInTurn evaluates a list until end. It returns the durations except the first, which only warms up.
func callInTurn(ctx context.Context, w way, list []byte, end time.Time) ([]time.Duration, error) {
	var times []time.Duration
	if _, err := w.evaluate(ctx, list); err != nil {
		return nil, err
	}
	for len(times) < 2 || time.Now().Before(end) {
		start := time.Now()
		if _, err := w.evaluate(ctx, list); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}
