// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"testing"
	"time"
)

// TestTempDirChecksFollowTheWriter has functions write at a steady rate until a check finds
// too much.
func TestTempDirChecksFollowTheWriter(t *testing.T) {
	const limit = 256 << 20
	tests := map[string]struct {
		rate   float64 // bytes per second
		most   int64   // that are there when it is found
		checks int     // at most
		reason string
	}{
		"as fast as it can": {writeRate, limit + 9<<20, 10, "what is written in a millisecond is too much"},
		"half as fast":      {writeRate / 2, limit + 5<<20, 20, "it is checked more often at the end"},
		"as fast as a disk": {200 << 20, limit + 1<<20, 200, "which takes more than a second"},
		"faster than assumed": {
			1.5 * writeRate, limit + 128<<20, 10,
			"the first check comes too late, and the next one at once",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var written int64
			checks := 0
			for written <= limit {
				wait := nextTempCheck(limit - written)
				if wait < minTempCheck || wait > tempCheck {
					t.Fatalf("the next check is after %v", wait)
				}
				written += int64(tc.rate * float64(wait) / float64(time.Second))
				checks++
			}
			if written > tc.most || checks > tc.checks {
				t.Errorf("%d MiB are written after %d checks, want %d and %d: %s",
					written>>20, checks, tc.most>>20, tc.checks, tc.reason)
			}
		})
	}
}
