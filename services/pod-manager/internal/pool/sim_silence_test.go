// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"time"
)

// busy is how long a lease may wait, in addition to the time until a pod has a node and is ready: until a pod is
// free (10 seconds), it is known why others broke (6), and lost events come (15), in turn.
const busy = 40 * time.Second

// judgeSilence looks with each second whether the waiting leases of a function get answers:
// pods, or the reason why there are none. It is no excuse that the API server is gone, no
// node has capacity, or pods cannot start or run out of memory, for however long.
func (w *world) judgeSilence() {
	for f, waiting := range w.referee.waiting {
		if len(waiting) == 0 || w.heard[f].IsZero() {
			w.heard[f] = w.now
		}
		if silence := w.now.Sub(w.heard[f]); silence > w.setup.ReadyTimeout+w.setup.SchedulingTimeout+busy && w.err == nil {
			w.err = fmt.Errorf("%d wait for %s, and none has got an answer for %s", len(waiting), f.Reference, silence)
		}
	}
}
