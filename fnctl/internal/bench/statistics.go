// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// resamples is how many times the rounds are drawn anew for an interval.
	resamples = 1000
	// confidence is the part of the resamples that is in an interval.
	confidence = 0.95
)

// distribution is the latencies of one target in all rounds.
type distribution []entry

// entry is a bar with its round.
type entry struct {
	bar
	round int
}

// newDistribution returns the latencies of the target at a place of each round.
func newDistribution(rounds [][]turn, target int) distribution {
	var d distribution
	for r, turns := range rounds {
		for _, b := range turns[target].bars {
			d = append(d, entry{b, r})
		}
	}
	slices.SortStableFunc(d, func(a, b entry) int { return cmp.Compare(a.latency, b.latency) })
	return d
}

// figures are what targets are compared by, in nanoseconds. Without an evaluation they are not numbers.
type figures struct{ p50, p90, p99, most, mean float64 }

// figures returns the figures if each round had occurred as often as its weight says.
func (d distribution) figures(weights []int) figures {
	var total int64
	var sum float64
	for _, e := range d {
		n := e.count * int64(weights[e.round])
		total += n
		sum += float64(n) * float64(e.latency)
	}
	at := d.quantiles(weights, total, .5, .9, .99, 1)
	return figures{p50: at[0], p90: at[1], p99: at[2], most: at[3], mean: sum / float64(total)}
}

// quantiles returns the latencies at ascending shares of so many evaluations.
func (d distribution) quantiles(weights []int, total int64, shares ...float64) []float64 {
	values := slices.Repeat([]float64{math.NaN()}, len(shares))
	var seen int64
	next := 0
	for _, e := range d {
		seen += e.count * int64(weights[e.round])
		for next < len(shares) && seen > 0 && float64(seen) >= shares[next]*float64(total) {
			values[next] = float64(e.latency)
			next++
		}
	}
	return values
}

// once is the weight of rounds as they occurred.
func once(rounds int) []int { return slices.Repeat([]int{1}, rounds) }

// draw returns how often each round is in a resample of as many rounds.
func draw(rng *rand.Rand, rounds int) []int {
	weights := make([]int, rounds)
	for range rounds {
		weights[rng.IntN(rounds)]++
	}
	return weights
}

// Ratio is what a figure of one target is of the first target's: measured, and the bounds that it is
// within with a confidence of 95 percent.
type Ratio struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// compare returns the ratios of the medians, of the 99th percentiles and of the means. Rounds are drawn, not
// evaluations: those of one turn depend on each other, and each round has the turns of both targets
// (a paired bootstrap, with so many resamples).
func compare(of, base distribution, rounds, resamples int, rng *rand.Rand) (p50, p99, mean *Ratio) {
	type ratios struct{ p50, p99, mean float64 }
	ratio := func(weights []int) ratios {
		a, b := of.figures(weights), base.figures(weights)
		return ratios{a.p50 / b.p50, a.p99 / b.p99, a.mean / b.mean}
	}
	measured := ratio(once(rounds))
	var p50s, p99s, means []float64
	for range resamples {
		r := ratio(draw(rng, rounds))
		p50s, p99s, means = append(p50s, r.p50), append(p99s, r.p99), append(means, r.mean)
	}
	return interval(measured.p50, p50s), interval(measured.p99, p99s), interval(measured.mean, means)
}

// interval returns a ratio and its bounds; nil if it is not a number.
func interval(measured float64, resampled []float64) *Ratio {
	resampled = slices.DeleteFunc(resampled, math.IsNaN)
	if math.IsNaN(measured) || math.IsInf(measured, 0) || len(resampled) == 0 {
		return nil
	}
	slices.Sort(resampled)
	outside := (1 - confidence) / 2
	at := func(share float64) float64 { return resampled[int(math.Round(share*float64(len(resampled)-1)))] }
	return &Ratio{Value: measured, Low: at(outside), High: at(1 - outside)}
}

// summarize returns the results of all targets with one input and one load.
func summarize(targets []Target, rounds [][]turn, rng *rand.Rand) Level {
	level := Level{Rounds: len(rounds)}
	base := newDistribution(rounds, 0)
	for i, target := range targets {
		d := newDistribution(rounds, i)
		result, took := count(rounds, i)
		result.Target = target.Name
		if result.Evaluations > 0 {
			f := d.figures(once(len(rounds)))
			result.PerSecond = float64(result.Evaluations) / took.Seconds()
			result.Milliseconds = &Latencies{
				P50: millis(f.p50), P90: millis(f.p90), P99: millis(f.p99), Max: millis(f.most), Mean: millis(f.mean),
			}
		}
		if i > 0 {
			result.P50Ratio, result.P99Ratio, result.MeanRatio = compare(d, base, len(rounds), resamples, rng)
		}
		level.Results = append(level.Results, result)
	}
	return level
}

// count returns the evaluations of the target at a place of each round, and how long its turns took.
func count(rounds [][]turn, target int) (result Result, took time.Duration) {
	for _, turns := range rounds {
		t := turns[target]
		took += t.took
		result.Failed += t.failed
		result.Failure = cmp.Or(t.failure, result.Failure)
		for _, b := range t.bars {
			result.Evaluations += b.count
		}
	}
	return result, took
}

// millis turns nanoseconds into milliseconds.
func millis(ns float64) float64 { return ns / float64(time.Millisecond) }
