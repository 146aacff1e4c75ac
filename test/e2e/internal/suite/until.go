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

// Until repeatedly calls the given function until its first result is true. The second result describes the current
// state. After a timeout, Until fails the test and prints this description.
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
