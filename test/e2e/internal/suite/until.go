// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"testing"
	"time"
)

// ConditionTimeout is the timeout of [Until]. It is shorter than the timeout of a test, so that Until can print the
// state of the system.
const ConditionTimeout = 5 * time.Minute

// Until calls holds repeatedly until holds returns true. The second result of holds describes the current state. Until
// prints it after a timeout.
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
