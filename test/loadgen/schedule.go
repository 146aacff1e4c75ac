// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// minRounds is how many rounds there are at least: fewer would say nothing about how much they differ.
const minRounds = 3

// countRounds returns how many rounds of turns fit into a duration.
func countRounds(duration, turn time.Duration, targets int) int {
	return max(minRounds, int(duration/(turn*time.Duration(targets))))
}

// arrivals returns when evaluations are due in an open loop, from its begin: independently of each
// other, as those of many callers are, at a rate in a second on average.
func arrivals(rng *rand.Rand, rate float64, length time.Duration) []time.Duration {
	var due []time.Duration
	for at := 0.0; ; {
		at += rng.ExpFloat64() / rate
		if at >= length.Seconds() {
			return due
		}
		due = append(due, time.Duration(at*float64(time.Second)))
	}
}
