// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
	"time"
)

// TestIntervalOfRounds has a machine become slower during a measurement: what counts is each round's ratio.
func TestIntervalOfRounds(t *testing.T) {
	var same, varied [][2]time.Duration
	for n := range 10 {
		plain := (1 + n) * 1_000_000
		same = append(same, [2]time.Duration{time.Duration(plain), time.Duration(plain * 104 / 100)})
		varied = append(varied, [2]time.Duration{time.Duration(plain), time.Duration(plain * (104 + n%2*10) / 100)})
	}
	if ratio, low, high := ratioInterval(same); math.Abs(ratio-1.04) > 1e-6 || high-low > 1e-6 {
		t.Errorf("a ratio of 1.04 is %v, between %v and %v", ratio, low, high)
	}
	if ratio, low, high := ratioInterval(varied); low >= ratio || high <= ratio || low > 1.09 || high < 1.09 {
		t.Errorf("ratios of 1.04 and 1.14 are %v, between %v and %v", ratio, low, high)
	}
}
