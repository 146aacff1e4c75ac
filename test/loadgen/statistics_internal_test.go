// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// ofMillis returns a turn with one evaluation of each duration.
func ofMillis(durations ...int) turn {
	r := newRecorder()
	for _, d := range durations {
		r.recordEvaluation(time.Duration(d)*time.Millisecond, nil)
	}
	r.took = time.Second
	return r.finishTurn()
}

func TestFigures(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	tests := map[string]struct {
		rounds  [][]turn
		weights []int
		want    figures // latencies in milliseconds
		reason  string
	}{
		"ranks": {
			[][]turn{{ofMillis(hundred...)}},
			[]int{1},
			figures{50, 90, 99, 100, 50.5, 100},
			"a percentile is a value that occurred",
		},
		"rounds together": {
			[][]turn{{ofMillis(10, 20)}, {ofMillis(30, 40)}},
			[]int{1, 1},
			figures{20, 40, 40, 40, 25, 2},
			"rounds are one population",
		},
		"weights": {
			[][]turn{{ofMillis(10, 20)}, {ofMillis(30, 40)}},
			[]int{0, 2},
			figures{30, 40, 40, 40, 35, 2},
			"a round that was not drawn does not count",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := newSample(tc.rounds, 0).figures(tc.weights)
			for _, pair := range [][2]float64{
				{got.p50, tc.want.p50},
				{got.p90, tc.want.p90},
				{got.p99, tc.want.p99},
				{got.most, tc.want.most},
				{got.mean, tc.want.mean},
			} {
				if ms := millis(pair[0]); ms < pair[1]*.998 || ms > pair[1]*1.002 {
					t.Errorf("%v ms, want %v: %s", ms, pair[1], tc.reason)
				}
			}
			if got.perSecond != tc.want.perSecond {
				t.Errorf("%v evaluations in a second, want %v: %s", got.perSecond, tc.want.perSecond, tc.reason)
			}
		})
	}
}

// TestIntervalsHoldTheTruth draws many measurements of two targets of which one takes 1.5 times as long, on a
// machine whose speed changes from round to round.
func TestIntervalsHoldTheTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const truth, experiments = 1.5, 40
	held, rates := 0, 0
	for range experiments {
		var rounds [][]turn
		for range 20 {
			machine := 1 + rng.Float64()
			var a, b []bar
			for range 5 {
				a = append(a, bar{time.Duration(1e9 * machine * (1 + rng.ExpFloat64()/5)), 1})
				b = append(b, bar{time.Duration(truth * 1e9 * machine * (1 + rng.ExpFloat64()/5)), 1})
			}
			rounds = append(rounds, []turn{{bars: a, took: sum(a)}, {bars: b, took: sum(b)}})
		}
		got := compareSamples(newSample(rounds, 1), newSample(rounds, 0), 200, rng)
		if got.mean.Low <= truth && truth <= got.mean.High {
			held++
		}
		if rate := got.perSecond; rate.Low <= 1/truth && 1/truth <= rate.High {
			rates++
		}
	}
	if held < 34 || rates < 34 {
		t.Errorf("%d and %d of %d intervals hold the true ratios, want about 38", held, rates, experiments)
	}
}

// sum is how long one caller takes for these evaluations.
func sum(bars []bar) (total time.Duration) {
	for _, b := range bars {
		total += b.latency
	}
	return total
}

// TestTargetsThatAlwaysFail have no figures, in no format.
func TestTargetsThatAlwaysFail(t *testing.T) {
	r := newRecorder()
	r.recordEvaluation(time.Millisecond, errors.New("denied"))
	r.took = time.Second
	failed := r.finishTurn()
	rounds := [][]turn{{ofMillis(1), failed}, {ofMillis(1), failed}}
	level := summarize([]Target{{Name: "base"}, {Name: "<denied>"}}, rounds, rand.New(rand.NewPCG(1, 1)))
	level.Input = "1 item"
	level.Callers = 1
	report := Report{Machine: ThisMachine(), Image: "example.com/fn:v1", Levels: []Level{level}}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
	if got := level.Results[1]; got.Failed != 2 || got.Milliseconds != nil || got.P50Ratio != nil {
		t.Errorf("got %+v", got)
	}
	if text := report.Text(); !strings.Contains(text, "| 1 item | 1 caller | <denied> | 0           | 2      | 0.0 ") {
		t.Errorf("text:\n%s", text)
	}
}

func TestMachineOfLinux(t *testing.T) {
	m := describeMachine("processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nprocessor\t: 1\n",
		"MemTotal:       25165824 kB\n", "6.1.0\n")
	if m.Processor != "Fast CPU @ 3 GHz" || m.Memory != "24 GiB" || m.Kernel != "6.1.0" {
		t.Errorf("got %+v", m)
	}
	if m := describeMachine("", "", ""); m.Processor+m.Memory+m.Kernel != "" || m.Processors == 0 {
		t.Errorf("without these files: %+v", m)
	}
}
