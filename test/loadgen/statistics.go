// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// resamples is the number of bootstrap samples for each confidence interval.
	resamples = 1000
	// confidence is the confidence level of the intervals.
	confidence = 0.95
)

// sample contains all measurements of a target. The target has a turn in each round.
type sample struct {
	latencies []entry         // ascending
	took      []time.Duration // duration of the turn in each round
}

// entry is a bar of a latency histogram, and the number of the round in which the bar was measured.
type entry struct {
	bar
	round int
}

func newSample(rounds [][]turn, target int) sample {
	var s sample
	for r, turns := range rounds {
		s.took = append(s.took, turns[target].took)
		for _, b := range turns[target].bars {
			s.latencies = append(s.latencies, entry{b, r})
		}
	}
	slices.SortStableFunc(s.latencies, func(a, b entry) int { return cmp.Compare(a.latency, b.latency) })
	return s
}

// figures contains the results of a target that are compared with other targets. Latencies are in nanoseconds. They are
// NaN if no evaluation succeeded.
type figures struct{ p50, p90, p99, most, mean, perSecond float64 }

// figures computes the results of a target. weights contains a weight for each round. A round with the weight 2 counts
// twice. A round with the weight 0 does not count.
func (s sample) figures(weights []int) figures {
	var total int64
	var sum, seconds float64
	for r, took := range s.took {
		seconds += float64(weights[r]) * took.Seconds()
	}
	for _, e := range s.latencies {
		n := e.count * int64(weights[e.round])
		total += n
		sum += float64(n) * float64(e.latency)
	}
	at := s.quantiles(weights, total, .5, .9, .99, 1)
	return figures{
		p50: at[0], p90: at[1], p99: at[2], most: at[3], mean: sum / float64(total), perSecond: float64(total) / seconds,
	}
}

// quantiles returns the latencies at several quantiles. The argument shares contains the quantiles in ascending order,
// such as 0.5 and 0.99. weights contains a weight for each round. total is the weighted number of evaluations.
func (s sample) quantiles(weights []int, total int64, shares ...float64) []float64 {
	values := slices.Repeat([]float64{math.NaN()}, len(shares))
	var seen int64
	next := 0
	for _, e := range s.latencies {
		seen += e.count * int64(weights[e.round])
		for next < len(shares) && seen > 0 && float64(seen) >= shares[next]*float64(total) {
			values[next] = float64(e.latency)
			next++
		}
	}
	return values
}

// eachOnce returns the weights of the rounds without bootstrap sampling: each round counts once.
func eachOnce(rounds int) []int { return slices.Repeat([]int{1}, rounds) }

// drawRounds draws rounds at random, with replacement, for a bootstrap sample. It returns the number of times that each
// round was drawn.
func drawRounds(rng *rand.Rand, rounds int) []int {
	weights := make([]int, rounds)
	for range rounds {
		weights[rng.IntN(rounds)]++
	}
	return weights
}

// Ratio divides a target's result by the first target's. Low and High bound its 95 % confidence interval.
type Ratio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// ratios contains the results of a target, divided by the results of the first target.
type ratios struct{ perSecond, p50, p99, mean *Ratio }

// compareSamples divides a target's results by base, the results of the first target. It determines the confidence
// intervals by a paired bootstrap, which draws random rounds. Each round contains the turns of both targets. It does
// not draw single evaluations, because evaluations in the same turn depend on each other.
func compareSamples(of, base sample, resamples int, rng *rand.Rand) ratios {
	rounds := len(of.took)
	measured := divideFigures(of, base, eachOnce(rounds))
	var resampled [4][]float64
	for range resamples {
		for i, ratio := range divideFigures(of, base, drawRounds(rng, rounds)) {
			resampled[i] = append(resampled[i], ratio)
		}
	}
	at := func(i int) *Ratio { return confidenceInterval(measured[i], resampled[i]) }
	return ratios{perSecond: at(0), p50: at(1), p99: at(2), mean: at(3)}
}

// divideFigures divides a target's results by base, the results of the first target. The ratios have the same order as
// the fields of the type ratios.
func divideFigures(of, base sample, weights []int) [4]float64 {
	a, b := of.figures(weights), base.figures(weights)
	return [4]float64{a.perSecond / b.perSecond, a.p50 / b.p50, a.p99 / b.p99, a.mean / b.mean}
}

// confidenceInterval returns a ratio with its confidence interval, or nil if the ratio is not a number.
func confidenceInterval(measured float64, resampled []float64) *Ratio {
	none := func(ratio float64) bool { return math.IsNaN(ratio) || math.IsInf(ratio, 0) }
	resampled = slices.DeleteFunc(resampled, none)
	if none(measured) || len(resampled) == 0 {
		return nil
	}
	slices.Sort(resampled)
	outside := (1 - confidence) / 2
	at := func(share float64) float64 { return resampled[int(math.Round(share*float64(len(resampled)-1)))] }
	return &Ratio{Value: measured, Low: at(outside), High: at(1 - outside)}
}

// summarize computes the results of each target over all rounds, and compares them with the first target's results.
func summarize(targets []Target, rounds [][]turn, rng *rand.Rand) Level {
	level := Level{Rounds: len(rounds)}
	base := newSample(rounds, 0)
	for i, target := range targets {
		s := newSample(rounds, i)
		result, client := countEvaluations(rounds, i)
		result.Target = target.Name
		if result.Evaluations > 0 {
			f := s.figures(eachOnce(len(rounds)))
			result.PerSecond = f.perSecond
			result.ClientMilliseconds = millis(float64(client)) / float64(result.Evaluations)
			result.Milliseconds = &Latencies{
				P50: millis(f.p50), P90: millis(f.p90), P99: millis(f.p99), Max: millis(f.most), Mean: millis(f.mean),
			}
		}
		if i > 0 {
			r := compareSamples(s, base, resamples, rng)
			result.PerSecondRatio = r.perSecond
			result.P50Ratio = r.p50
			result.P99Ratio = r.p99
			result.MeanRatio = r.mean
		}
		level.Results = append(level.Results, result)
	}
	return level
}

// countEvaluations counts a target's successful and failed evaluations. client is the processor time that this
// program used during the target's turns.
func countEvaluations(rounds [][]turn, target int) (result Result, client time.Duration) {
	for _, turns := range rounds {
		t := turns[target]
		client += t.client
		result.Failed += t.failed
		result.Failure = cmp.Or(t.failure, result.Failure)
		for _, b := range t.bars {
			result.Evaluations += b.count
		}
	}
	return result, client
}

func millis(ns float64) float64 { return ns / float64(time.Millisecond) }
