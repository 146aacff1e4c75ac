// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestDiscardIsBounded has more evaluations end at a time than directories may wait for their removal.
func TestDiscardIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs, err := newTempDirs(Config{TempDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.withDefaults(), func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer dirs.close()
		const more = 3
		for range maxDiscarded + more {
			dir, err := dirs.make()
			if err != nil {
				t.Fatal(err)
			}
			dir.Discard()
		}
		if left := entries(t, dirs.base); left != maxDiscarded {
			t.Errorf("%d directories are there, want %d: the others are removed at once", left, maxDiscarded)
		}
		<-time.After(removeAfter)
		synctest.Wait()
		if left := entries(t, dirs.base); left != 0 || dirs.discarded != 0 {
			t.Errorf("%d directories are there after a while, and %d are counted", left, dirs.discarded)
		}
	})
}

// TestCloseWaitsForRemovals closes while directories wait for their removal, and discards one after.
func TestCloseWaitsForRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := t.TempDir()
		dirs, err := newTempDirs(Config{TempDir: parent, Log: slog.New(slog.DiscardHandler)}.withDefaults(), func() {})
		if err != nil {
			t.Fatal(err)
		}
		early, earlyErr := dirs.make()
		late, lateErr := dirs.make()
		if earlyErr != nil || lateErr != nil {
			t.Fatal(earlyErr, lateErr)
		}
		early.Discard()
		dirs.close()
		late.Discard()
		if left := entries(t, parent); left != 0 || dirs.discarded != 0 {
			t.Errorf("%d directories are left, and %d are counted", left, dirs.discarded)
		}
	})
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
