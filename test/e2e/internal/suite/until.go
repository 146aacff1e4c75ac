package suite

import (
	"context"
	"testing"
	"time"
)

// Patience is for one condition; only a failing test uses it up. It ends before the
// context, with which conditions are looked at.
const Patience = time.Minute

// Until waits until a condition holds. The condition's text says how it is otherwise.
func Until(ctx context.Context, t testing.TB, what string, holds func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, is := holds()
		if ok {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waiting until %s: %v; it is: %s", what, context.Cause(ctx), is)
		}
	}
}
