// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// minRounds is the minimum number of rounds. Fewer rounds do not suffice to estimate the variation between rounds.
const minRounds = 3

// countRounds returns the number of rounds that fill the duration, but at least minRounds. In each round, every target
// has a turn.
func countRounds(duration, turn time.Duration, targets int) int {
	return max(minRounds, int(duration/(turn*time.Duration(targets))))
}

// scheduleArrivals returns random start times of evaluations, relative to the start of the turn. The times are
// independent of each other, like the calls of many users. rate is the average number of evaluations per second.
func scheduleArrivals(rng *rand.Rand, rate float64, length time.Duration) []time.Duration {
	var due []time.Duration
	for at := 0.0; ; {
		at += rng.ExpFloat64() / rate
		if at >= length.Seconds() {
			return due
		}
		due = append(due, time.Duration(at*float64(time.Second)))
	}
}
