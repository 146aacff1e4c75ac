// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Target evaluates lists, such as a gateway or a bare process.
type Target struct {
	Name     string
	Evaluate Evaluate
	// Loop runs the evaluations of a caller of a closed loop. If it is nil, Evaluate is called again and again.
	Loop Loop
}

// Evaluate evaluates a resource list, and returns the function's output.
type Evaluate func(ctx context.Context, list []byte) ([]byte, error)

// Loop evaluates a list again and again. It calls each after every evaluation, with its error, and returns when each
// returns false.
type Loop func(ctx context.Context, list []byte, each func(error) bool)

// Input is a resource list that is evaluated.
type Input struct {
	Name string
	List []byte
}

// Load is the load on a target: either a number of callers, each of which waits for its answer before it calls again
// (closed loop), or a rate of evaluations per second regardless of unanswered calls (open loop). One of the two is
// zero.
type Load struct {
	Callers int
	Rate    float64
}

// String returns the load for readers.
func (l Load) String() string {
	switch {
	case l.Rate > 0:
		return fmt.Sprintf("%g/s", l.Rate)
	case l.Callers == 1:
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", l.Callers)
}

// Plan is a whole measurement: each input with each load at each target. The ratios of the results compare each
// further target with the first target.
type Plan struct {
	Targets []Target
	Inputs  []Input
	Loads   []Load
	// Duration is the approximate time in which all targets together are measured with the same input and load. Turn
	// is the time in which a target is measured before the next target's turn.
	Duration, Turn time.Duration
	// WarmUp is the time in which each target is called with an input and a load before its turns count.
	WarmUp time.Duration
	// Settle is the time before each turn in which no target is called: the work of another target after its last
	// answer, such as starting processes for later evaluations, finishes in this time.
	Settle time.Duration
	// MaxInFlight bounds the concurrent evaluations of an open loop. Further evaluations wait, and their latency
	// includes this wait.
	MaxInFlight int
	// Seed decides the order of turns, the arrivals of open loops, and the resamples.
	Seed uint64
}

// Run measures the whole plan. It fails if the first evaluation of a target does.
func Run(ctx context.Context, plan Plan) ([]Level, error) {
	rng := rand.New(rand.NewPCG(plan.Seed, 0))
	var levels []Level
	for _, input := range plan.Inputs {
		different, err := plan.compareOutputs(ctx, input)
		if err != nil {
			return nil, err
		}
		for _, load := range plan.Loads {
			rounds, err := plan.measureLoad(ctx, input, load, rng)
			if err != nil {
				return nil, err
			}
			level := summarize(plan.Targets, rounds, rng)
			level.Input, level.Bytes = input.Name, len(input.List)
			level.Callers = load.Callers
			level.Rate = load.Rate
			level.Different = different
			levels = append(levels, level)
		}
	}
	return levels, nil
}

// compareOutputs evaluates an input once at each target, and returns the names of targets that return
// something else than the first.
func (p Plan) compareOutputs(ctx context.Context, input Input) (different []string, err error) {
	var want []byte
	for i, target := range p.Targets {
		got, err := target.Evaluate(ctx, input.List)
		switch {
		case err != nil:
			return nil, fmt.Errorf("target %s, %s: %w", target.Name, input.Name, err)
		case i == 0:
			want = got
		case string(got) != string(want):
			different = append(different, target.Name)
		}
	}
	return different, nil
}

// measureLoad returns the turns of each round, by the place of their target.
func (p Plan) measureLoad(ctx context.Context, input Input, load Load, rng *rand.Rand) ([][]turn, error) {
	recorder := newRecorder()
	one := func(target Target, length time.Duration) (turn, error) {
		err := p.takeTurn(ctx, target, input.List, load, length, rng, recorder)
		return recorder.finishTurn(), err
	}
	if p.WarmUp > 0 {
		for _, target := range p.Targets {
			if _, err := one(target, p.WarmUp); err != nil {
				return nil, err
			}
		}
	}
	rounds := make([][]turn, countRounds(p.Duration, p.Settle+p.Turn, len(p.Targets)))
	for r := range rounds {
		rounds[r] = make([]turn, len(p.Targets))
		for _, i := range rng.Perm(len(p.Targets)) {
			took, err := one(p.Targets[i], p.Turn)
			if err != nil {
				return nil, err
			}
			rounds[r][i] = took
		}
	}
	return rounds, nil
}
