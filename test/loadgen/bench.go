// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Target is a server or program to measure, such as a gateway, or the program of a function without a server.
type Target struct {
	Name     string
	Evaluate Evaluate
	// Loop runs a caller's evaluations, one after another. If it is nil, Evaluate is called repeatedly.
	Loop Loop
}

// Evaluate evaluates a resource list and returns the output.
type Evaluate func(ctx context.Context, list []byte) ([]byte, error)

// Loop evaluates a list repeatedly. After every evaluation, it passes the error or nil to a callback function. It stops
// when the callback function returns false.
type Loop func(ctx context.Context, list []byte, each func(error) bool)

// Input is a resource list to evaluate.
type Input struct {
	Name string
	List []byte
}

// Load is a closed or an open loop. In a closed loop, each of the Callers waits for an answer before its next call, and
// Rate is zero. In an open loop, Rate calls start per second, regardless of unanswered calls, and Callers is zero.
type Load struct {
	Callers int
	Rate    float64
}

// String describes the load for the table of results, such as "8 callers".
func (l Load) String() string {
	switch {
	case l.Rate > 0:
		return fmt.Sprintf("%g/s", l.Rate)
	case l.Callers == 1:
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", l.Callers)
}

// Plan describes a measurement of all targets with all inputs and loads. The first target is the baseline.
type Plan struct {
	Targets []Target
	Inputs  []Input
	Loads   []Load
	// Duration is the approximate measuring time of all targets together, for each input and load. The targets are
	// measured in turns, and Turn is the duration of a turn.
	Duration, Turn time.Duration
	// WarmUp is the time for which each target is called before the measurements, for each input and load.
	WarmUp time.Duration
	// Settle is a pause before each turn. During the pause, the previous target can finish background work, such as
	// starting processes for later evaluations.
	Settle time.Duration
	// MaxInFlight limits concurrent evaluations in an open loop. A call that must wait because of this limit starts late,
	// and its latency includes this delay.
	MaxInFlight int
	// Seed initializes all random choices: the order of turns, arrivals in open loops, and bootstrap resamples.
	Seed uint64
}

// Run executes the plan, and returns the results for each input and load. It fails if the first evaluation of an input
// fails at any target. It counts later failures in the results.
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
			level.Input = input.Name
			level.Bytes = len(input.List)
			level.Callers = load.Callers
			level.Rate = load.Rate
			level.Different = different
			levels = append(levels, level)
		}
	}
	return levels, nil
}

// compareOutputs returns the names of the targets whose output for an input differs from the first target's output. It
// returns an error if an evaluation fails.
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

// measureLoad measures all targets with an input and a load. Each round measures every target once. The result is
// indexed by round and target.
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
