// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Target is one way to evaluate.
type Target struct {
	Name     string
	Evaluate Evaluate
	// Loop is what a caller of a closed loop does; nil for one call of Evaluate after the other.
	Loop Loop
}

// Evaluate evaluates one resource list, and returns the function's output.
type Evaluate func(ctx context.Context, list []byte) ([]byte, error)

// Loop evaluates a list again and again. It calls each after every evaluation, with its error, and returns when each
// returns false.
type Loop func(ctx context.Context, list []byte, each func(error) bool)

// Input is a resource list that is evaluated.
type Input struct {
	Name string
	List []byte
}

// Load is how many evaluations are asked for: by a number of callers, of which each waits for
// its answer before it calls again (closed loop), at a rate in a second, whether or not
// earlier ones were answered (open loop). The other one is zero.
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

// Plan is a whole measurement: each input with each load at each target. The ratios of the results
// compare the other targets with the first one.
type Plan struct {
	Targets []Target
	Inputs  []Input
	Loads   []Load
	// Duration is about how long all targets together are measured with one input and one load, and
	// Turn how long one target is before the next one.
	Duration, Turn time.Duration
	// WarmUp is how long each target is called with an input and a load before its turns count.
	WarmUp time.Duration
	// Settle is the time before each turn in which no target is called: what another one does after its last
	// answer, such as starting processes for later evaluations, ends there.
	Settle time.Duration
	// MaxInFlight bounds the evaluations of an open loop at a time. Others that are due wait; the wait
	// is in their latency.
	MaxInFlight int
	// Seed decides the order of turns, the arrivals of open loops, and the resamples.
	Seed uint64
}

// Run measures the whole plan. It fails if the first evaluation of a target does.
func Run(ctx context.Context, plan Plan) ([]Level, error) {
	rng := rand.New(rand.NewPCG(plan.Seed, 0))
	var levels []Level
	for _, input := range plan.Inputs {
		different, err := plan.compare(ctx, input)
		if err != nil {
			return nil, err
		}
		for _, load := range plan.Loads {
			rounds, err := plan.measure(ctx, input, load, rng)
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

// compare evaluates an input once at each target, and returns the names of targets that return
// something else than the first.
func (p Plan) compare(ctx context.Context, input Input) (different []string, err error) {
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

// measure returns the turns of each round, by the place of their target.
func (p Plan) measure(ctx context.Context, input Input, load Load, rng *rand.Rand) ([][]turn, error) {
	recorder := newRecorder()
	one := func(target Target, length time.Duration) (turn, error) {
		err := p.take(ctx, target, input.List, load, length, rng, recorder)
		return recorder.turn(), err
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
