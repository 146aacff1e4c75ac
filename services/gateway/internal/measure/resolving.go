package measure

import (
	"context"
	"sync/atomic"
	"time"
)

// Resolving adds up how long one evaluation takes to find out what its image is: the
// front door asks for its name, and whoever lends pods, at each try, for what that means.
type Resolving struct{ total atomic.Int64 }

// resolvingKey is where a context has a Resolving.
type resolvingKey struct{}

// With returns a context in which [Resolved] adds to r.
func (r *Resolving) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, resolvingKey{}, r)
}

// Total is how long it took so far.
func (r *Resolving) Total() time.Duration { return time.Duration(r.total.Load()) }

// Resolved says that it took d, or d more, to find out what the image of ctx's evaluation
// is. Nothing becomes of that without one.
func Resolved(ctx context.Context, d time.Duration) {
	if r, ok := ctx.Value(resolvingKey{}).(*Resolving); ok {
		r.total.Add(int64(d))
	}
}
