// SPDX-License-Identifier: Apache-2.0

// Package await lets tests wait for a result of other goroutines or processes.
package await

import (
	"testing"
	"time"
)

// timeout is the maximum wait of a test. It is long, because it only ends tests that would otherwise hang.
const timeout = 5 * time.Minute

// Equal calls get repeatedly until get returns want. After a timeout, it fails the test. The argument what describes
// the awaited value in the error.
func Equal[T comparable](t testing.TB, what string, get func() T, want T) {
	t.Helper()
	for start, got := time.Now(), get(); got != want; got = get() {
		if time.Since(start) > timeout {
			t.Fatalf("%s: %v after %v, want %v", what, got, timeout, want)
		}
		<-time.After(time.Millisecond)
	}
}
