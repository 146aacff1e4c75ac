// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpenLoopCountsFromWhenEvaluationsWereDue has a target that stalls once: evaluations that were due
// meanwhile have their part of the stall in their latencies.
func TestOpenLoopCountsFromWhenEvaluationsWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		stall := func() error {
			if calls.Add(1) == 1 {
				<-time.After(time.Second)
			}
			<-time.After(time.Millisecond)
			return nil
		}
		var due []time.Duration
		for i := range 10 {
			due = append(due, time.Duration(i)*100*time.Millisecond)
		}
		r := newRecorder()
		runOpen(t.Context(), due, 1, stall, r)
		got := r.finishTurn()
		slow := int64(0)
		for _, b := range got.bars {
			if b.latency > 90*time.Millisecond {
				slow += b.count
			}
		}
		if slow != 10 {
			t.Errorf("%d of 10 evaluations show the stall of a second, which kept all of them waiting", slow)
		}
	})
}

func TestOpenLoopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		runOpen(t.Context(), make([]time.Duration, 50), 7, func() error {
			most.Store(max(most.Load(), running.Add(1)))
			<-time.After(time.Second)
			running.Add(-1)
			return nil
		}, newRecorder())
		if most.Load() != 7 {
			t.Errorf("%d evaluations at a time, want 7", most.Load())
		}
	})
}

func TestLoopsEndWithTheirContext(t *testing.T) {
	for name, load := range map[string]Load{"closed": {Callers: 3}, "open": {Rate: 100}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				target := Target{Name: "slow", Evaluate: func(ctx context.Context, _ []byte) ([]byte, error) {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(10 * time.Millisecond):
						return nil, nil
					}
				}}
				plan := Plan{
					Targets: []Target{target}, Inputs: []Input{{Name: "list"}}, Loads: []Load{load},
					Duration: time.Hour, Turn: time.Minute, MaxInFlight: 10,
				}
				start := time.Now()
				if _, err := Run(ctx, plan); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("ended %v after the begin", took)
				}
			})
		})
	}
}

// TestTargetsRestBetweenTurns measures a target that does something else for a time after each answer, in which it is
// slow.
func TestTargetsRestBetweenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busyUntil atomic.Int64
		now := func() int64 { return time.Now().UnixNano() }
		base := Target{Name: "base", Evaluate: func(context.Context, []byte) ([]byte, error) {
			<-time.After(time.Millisecond)
			busyUntil.Store(now() + int64(50*time.Millisecond))
			return nil, nil
		}}
		other := Target{Name: "other", Evaluate: func(context.Context, []byte) ([]byte, error) {
			<-time.After(time.Millisecond)
			if now() < busyUntil.Load() {
				t.Error("it was called while the other target used the machine")
			}
			return nil, nil
		}}
		plan := Plan{
			Targets:  []Target{base, other},
			Duration: 10 * time.Second, Turn: time.Second, WarmUp: time.Second, Settle: 100 * time.Millisecond,
		}
		rounds, err := plan.measureLoad(t.Context(), Input{}, Load{Callers: 1}, rand.New(rand.NewPCG(1, 2)))
		if err != nil || len(rounds) != 4 {
			t.Fatal(err)
		}
	})
}

// TestTwoTargets measures one target that takes twice as long as the other.
func TestTwoTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taking := func(d time.Duration, out string) Evaluate {
			return func(context.Context, []byte) ([]byte, error) {
				<-time.After(d)
				return []byte(out), nil
			}
		}
		plan := Plan{
			Targets: []Target{
				{Name: "base", Evaluate: taking(10*time.Millisecond, "a")},
				{Name: "slow", Evaluate: taking(20*time.Millisecond, "b")},
			},
			Inputs: []Input{{"list", []byte("items")}}, Loads: []Load{{Callers: 2}, {Rate: 50}},
			Duration: 20 * time.Second, Turn: time.Second, MaxInFlight: 100,
		}
		levels, err := Run(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, level := range levels {
			if level.Rounds != 10 || len(level.Different) != 1 || level.Different[0] != "slow" {
				t.Errorf("%d rounds, other output from %v; want 10, [slow]", level.Rounds, level.Different)
			}
			ratio := level.Results[1].P50Ratio
			if ratio == nil || ratio.Value < 1.99 || ratio.Value > 2.01 || ratio.Low > 2.01 || ratio.High < 1.99 {
				t.Errorf("ratio %+v, want 2", ratio)
			}
		}
		if rate := levels[0].Results[1].PerSecondRatio; rate == nil || rate.Value < .49 || rate.Value > .51 {
			t.Errorf("ratio of evaluations in a second %+v, want 0.5", rate)
		}
		if got := levels[0].Results[0].PerSecond; got < 199 || got > 201 {
			t.Errorf("two callers of 10 ms each evaluate %v times a second, want 200", got)
		}
	})
}

// TestFailuresAreNoLatencies has a target whose every second evaluation fails at once.
func TestFailuresAreNoLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		target := Target{Name: "flaky", Evaluate: func(context.Context, []byte) ([]byte, error) {
			if calls.Add(1)%2 == 0 {
				<-time.After(time.Millisecond)
				return nil, errors.New("no capacity")
			}
			<-time.After(10 * time.Millisecond)
			return nil, nil
		}}
		levels, err := Run(t.Context(), Plan{
			Targets: []Target{target}, Inputs: []Input{{Name: "list"}}, Loads: []Load{{Callers: 1}},
			Duration: time.Second, Turn: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		result := levels[0].Results[0]
		if result.Failed == 0 || result.Failure != "no capacity" || result.Milliseconds.P50 < 9.9 {
			t.Errorf("got %+v, p50 %v ms", result, result.Milliseconds.P50)
		}
	})
}

func TestArrivalsHaveTheRate(t *testing.T) {
	due := scheduleArrivals(rand.New(rand.NewPCG(1, 2)), 100, 100*time.Second)
	if len(due) < 9_500 || len(due) > 10_500 {
		t.Errorf("%d evaluations in 100 s at 100/s", len(due))
	}
}
