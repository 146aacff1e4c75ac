// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"time"
)

// extensionDelay is the longest that an extension takes here, with the tick before it.
const extensionDelay = 3 * time.Second

// judgeEnds looks for pods in use whose end is past: another replica, which sees of a
// lease only that the end is put off, would delete them. It is no fault of the machine
// if Kubernetes did not do what it was asked for.
func (k *kube) judgeEnds() {
	w := k.world
	for _, p := range k.pods {
		end := p.seen.ReclaimAfter
		inUse := w.referee.held[p.seen.UID] > 0 && !p.seen.Deleting
		switch {
		case !inUse, end.IsZero(), p.unextended, end.After(w.now):
			p.lapsed = time.Time{}
		case p.lapsed.IsZero():
			p.lapsed = w.now
		case w.now.Sub(p.lapsed) > extensionDelay && w.err == nil:
			w.err = fmt.Errorf("pod %s is in use, and its end is %s past: another replica would delete it",
				p.seen.Name, w.now.Sub(end))
		}
	}
}
