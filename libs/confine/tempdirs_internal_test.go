// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestRemoveLaterIsBounded has more evaluations end at a time than directories may wait for their removal.
func TestRemoveLaterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs, err := newTempDirs(Config{TempDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		defer dirs.close()
		const more = 3
		for range maxRemoving + more {
			dir, err := dirs.makeDir()
			if err != nil {
				t.Fatal(err)
			}
			dir.RemoveLater()
		}
		if left := entries(t, dirs.base); left != maxRemoving {
			t.Errorf("%d directories are there, want %d: the others are removed at once", left, maxRemoving)
		}
		<-time.After(removeAfter)
		synctest.Wait()
		if left := entries(t, dirs.base); left != 0 || dirs.removing != 0 {
			t.Errorf("%d directories are there after a while, and %d are counted", left, dirs.removing)
		}
	})
}

// TestCloseWaitsForRemovals closes while directories wait for their removal, and removes one later after that.
func TestCloseWaitsForRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := t.TempDir()
		dirs, err := newTempDirs(Config{TempDir: parent, Log: slog.New(slog.DiscardHandler)}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		early, earlyErr := dirs.makeDir()
		late, lateErr := dirs.makeDir()
		if earlyErr != nil || lateErr != nil {
			t.Fatal(earlyErr, lateErr)
		}
		early.RemoveLater()
		dirs.close()
		late.RemoveLater()
		if left := entries(t, parent); left != 0 || dirs.removing != 0 {
			t.Errorf("%d directories are left, and %d are counted", left, dirs.removing)
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
