// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"
)

// minRounds is the minimum number of rounds, because confidence intervals are based on variation between rounds.
const minRounds = 3

// countRounds returns the number of rounds that fit into a duration. A round consists of a turn of each target.
func countRounds(duration, turn time.Duration, targets int) int {
	return max(minRounds, int(duration/(turn*time.Duration(targets))))
}

// scheduleArrivals returns the times when evaluations of an open loop start, relative to its start. The times are
// random and independent, like the calls of many users. rate is their average number per second.
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
