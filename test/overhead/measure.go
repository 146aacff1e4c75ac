// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// times contains the durations and the processor time of a program's evaluations.
type times struct {
	evaluations []time.Duration
	// cpu is the processor time of all calls. It includes the first call of each turn. This call is a warm-up, and
	// evaluations does not contain its duration.
	cpu   time.Duration
	calls int // number of calls in cpu
}

// measure returns the times of each program, by name. It measures the programs alternately, in a random order in each
// round, so that changes of the machine's speed affect all programs. Programs never run concurrently, so that
// background work of a program, such as starting processes, does not slow down the next program.
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

// inTurns measures programs alternately, in a random order in each round. If pause is not zero, each program evaluates
// once per round, after the pause. Otherwise, it evaluates repeatedly, and the first evaluation does not count.
func (b *bench) inTurns(ctx context.Context, ways []way, list []byte, pause time.Duration) ([]times, error) {
	all := make([]times, len(ways))
	if len(ways) == 0 {
		return nil, nil
	}
	end := time.Now().Add(b.budget)
	for round := 0; round < 2 || time.Now().Before(end); round++ {
		for _, i := range rand.Perm(len(ways)) {
			if pause > 0 {
				<-time.After(pause)
				start := time.Now()
				if _, err := ways[i].evaluate(ctx, list); err != nil {
					return nil, fmt.Errorf("%s: %w", ways[i].name, err)
				}
				all[i].evaluations = append(all[i].evaluations, time.Since(start))
				continue
			}
			took, err := takeTurn(ctx, ways[i], list, 1, b.block)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ways[i].name, err)
			}
			all[i].evaluations = append(all[i].evaluations, took...)
		}
	}
	return all, nil
}

// timeTurn runs the evaluations of a turn, and measures their processor time in this program and in the server.
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

// takeTurn runs concurrent callers that evaluate repeatedly, and returns the durations of their evaluations. It omits
// the first evaluation of each caller, which is slower because the machine was idle before.
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

// callInTurn evaluates a list repeatedly until end. It omits the duration of the first evaluation, which is a warm-up.
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
