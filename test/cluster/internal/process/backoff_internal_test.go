// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"
	"time"
)

func TestBackoffGrowsUntilAProgramWasHealthy(t *testing.T) {
	b := newBackoff()
	for i, test := range []struct {
		reason    string
		ran, want time.Duration
	}{
		{"the first failure", 0, 250 * time.Millisecond},
		{"again at once", 0, 500 * time.Millisecond},
		{"and again", time.Second, time.Second},
		{"a new failure of a healthy program", time.Minute, 250 * time.Millisecond},
	} {
		if got := b.next(test.ran); got != test.want {
			t.Errorf("%d, %s: wait %v, want %v", i, test.reason, got, test.want)
		}
	}
	for range 20 {
		if got := b.next(0); got > maxBackoff {
			t.Fatalf("wait %v is longer than %v", got, maxBackoff)
		}
	}
}
