// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/phase"
)

func TestCounts(t *testing.T) {
	got := phase.Counts(map[string]int32{"run": 3, "queue": 12, "pull": 0, "unknown": 7})
	if want := []string{"12 queue", "3 run"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567: "1.23ms", 12345678: "12ms", 1234567890: "1.235s", 123456789012: "2m3.5s",
	} {
		if got := phase.Took(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}
