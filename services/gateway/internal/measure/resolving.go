// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"sync/atomic"
	"time"
)

// Resolving adds up how long one evaluation takes to resolve its image: the front
// door resolves the name, and the pod-manager, with each lease, the digest.
type Resolving struct{ total atomic.Int64 }

// resolvingKey is where a context has a Resolving.
type resolvingKey struct{}

// With returns a context in which [Resolved] adds to r.
func (r *Resolving) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, resolvingKey{}, r)
}

// Total is how long it took so far.
func (r *Resolving) Total() time.Duration { return time.Duration(r.total.Load()) }

// Resolved adds d to the time that ctx's evaluation took to resolve its image. It does
// nothing if ctx has no Resolving.
func Resolved(ctx context.Context, d time.Duration) {
	if r, ok := ctx.Value(resolvingKey{}).(*Resolving); ok {
		r.total.Add(int64(d))
	}
}
