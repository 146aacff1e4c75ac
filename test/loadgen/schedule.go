// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// minRounds is the minimum number of rounds: fewer rounds would not show their variation.
const minRounds = 3

// countRounds returns the number of rounds of turns that fit into a duration.
func countRounds(duration, turn time.Duration, targets int) int {
	return max(minRounds, int(duration/(turn*time.Duration(targets))))
}

// scheduleArrivals returns the times at which evaluations of an open loop are due, relative to its begin. The times are
// independent of each other, as with many callers, at an average rate per second.
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
