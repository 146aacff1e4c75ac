// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"testing"
	"time"
)

// ConditionTimeout bounds the wait for a condition. Only a failing test waits that long. It expires before the
// context with which conditions are checked.
const ConditionTimeout = 5 * time.Minute

// Until waits until a condition holds. The condition's text describes the state otherwise.
func Until(ctx context.Context, t testing.TB, what string, holds func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, ConditionTimeout)
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
			t.Fatalf("wait until %s: %v; it is: %s", what, context.Cause(ctx), is)
		}
	}
}
