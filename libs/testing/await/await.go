// SPDX-License-Identifier: Apache-2.0

// Package await waits in tests for what other goroutines or processes do.
package await

import (
	"testing"
	"time"
)

// timeout only ends tests that would hang.
const timeout = 5 * time.Minute

// Equal calls get until it returns want. It fails the test after a timeout.
func Equal[T comparable](t testing.TB, what string, get func() T, want T) {
	t.Helper()
	for start, got := time.Now(), get(); got != want; got = get() {
		if time.Since(start) > timeout {
			t.Fatalf("%s: %v after %v, want %v", what, got, timeout, want)
		}
		<-time.After(time.Millisecond)
	}
}
