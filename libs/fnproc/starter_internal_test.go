// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestStartersAvoidTheMainThread has so many starters that one of them would get the main thread, which goes on after
// Close: what it started would too.
func TestStartersAvoidTheMainThread(t *testing.T) {
	for range 100 {
		s := NewStarter()
		defer s.Close()
		if err := s.runOnThread(func() {
			if unix.Gettid() == os.Getpid() {
				t.Error("a starter has the main thread")
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}
