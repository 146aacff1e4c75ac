// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"sync/atomic"
	"time"
)

// Resolving adds up how long one evaluation takes to resolve its image: the front
// door resolves the name, and the pod-manager, with each lease, the digest.
type Resolving struct{ total atomic.Int64 }

// Add adds d. A nil Resolving ignores it.
func (r *Resolving) Add(d time.Duration) {
	if r != nil {
		r.total.Add(int64(d))
	}
}

// Total is how long it took so far.
func (r *Resolving) Total() time.Duration { return time.Duration(r.total.Load()) }
