// SPDX-License-Identifier: Apache-2.0

package pool_test

import "testing"

// TestEndsOfPodsAreForgotten has pods end in each way that is remembered for a while.
func TestEndsOfPodsAreForgotten(t *testing.T) {
	t.Parallel()
	p := newPlayer(behaviour{})
	play := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := p.play(line); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	}
	play("request 1 f", "up f-1", "end 1", "see f-1 starved", "gone f-1", "request 2 g", "up g-1", "end 2", "gone g-1")
	if gone, starved := p.referee.machine.Remembered(); gone != 2 || starved != 1 {
		t.Errorf("%d pods are remembered that are gone, and %d that ran out of memory, want 2 and 1", gone, starved)
	}
	play("wait 12m")
	if gone, starved := p.referee.machine.Remembered(); gone != 0 || starved != 0 {
		t.Errorf("%d pods are remembered that are gone, and %d that ran out of memory, want none", gone, starved)
	}
}
