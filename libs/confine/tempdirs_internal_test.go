// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
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

// TestEntriesThatDisappearDoNotCount has a function that removes and replaces entries while they are counted.
func TestEntriesThatDisappearDoNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	removed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = removed.Close() }()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if count := (counter{bytes: 1 << 20, files: 10}); !count.countEntries(removed, maxTempDepth) {
		t.Error("a directory that was removed after it was opened exceeds a limit")
	}

	dir := t.TempDir()
	stopped := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		name := filepath.Join(dir, "entry")
		for {
			select {
			case <-stopped:
				return
			default:
			}
			_ = os.Mkdir(name, 0o700)
			_ = os.Remove(name)
			_ = os.WriteFile(name, nil, 0o600)
			_ = os.Remove(name)
			_ = os.Symlink("entry", name)
			_ = os.Remove(name)
		}
	})
	for range 20000 {
		if count := (counter{bytes: 1 << 20, files: 10}); !count.countTree(dir) {
			t.Error("an entry that was replaced while it was counted exceeds a limit")
			break
		}
	}
	close(stopped)
	writer.Wait()
}

// TestSharedParentIsEmptied has Config.Shared contain the parent of the temporary directories, as in a pod. All files
// there count towards the limits of a function that may write to the parent, and none of them stays.
func TestSharedParentIsEmptied(t *testing.T) {
	parent := t.TempDir()
	c, err := New(Config{TempDir: parent, Shared: []string{parent}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	prepare := func(shared bool) *TempDir {
		setup, err := c.Prepare(Function{Path: "/bin/true", Shared: shared}, nil)
		if err != nil {
			t.Fatal(err)
		}
		setup.Close()
		return setup.Temp
	}
	const size = 1 << 20
	earlier := prepare(false)
	writeBytes(t, filepath.Join(earlier.path, "secret"), size)
	earlier.RemoveLater()
	if !c.EmptyShared() || entries(t, parent) != 0 {
		t.Errorf("%d entries of the parent are left after an evaluation, want none", entries(t, parent))
	}
	temp := prepare(true)
	before, _ := temp.Free()
	for _, dir := range []string{parent, c.temp.base, temp.path} {
		writeBytes(t, filepath.Join(dir, "a"), size)
		after, ok := temp.Free()
		if written := before - after; !ok || written < size || written > size+size/4 {
			t.Errorf("%t, %d bytes count after %d bytes were written to %s", ok, written, size, dir)
		}
		before = after
	}
	if !c.EmptyShared() || entries(t, parent) != 0 {
		t.Errorf("%d entries of the parent are left after an evaluation that ran alone, want none", entries(t, parent))
	}
	if free, ok := prepare(true).Free(); !ok || free < c.cfg.MaxTempBytes-size {
		t.Errorf("%t, %d bytes are free for the next evaluation", ok, free)
	}
}

// TestOnlyEmptyDirectoriesAreShared has a shared directory that contains a file of others.
func TestOnlyEmptyDirectoriesAreShared(t *testing.T) {
	empty, used := t.TempDir(), t.TempDir()
	file := filepath.Join(used, "file")
	writeBytes(t, file, 1)
	c, err := New(Config{TempDir: t.TempDir(), Shared: []string{empty, used}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(c.sharedRules) > 1 || !slices.Equal(c.shared, []string{empty}) {
		t.Errorf("%d rules, functions may write to %v, want only the empty directory", len(c.sharedRules), c.shared)
	}
	emptied := c.EmptyShared()
	if _, err := os.Stat(file); !emptied || err != nil {
		t.Errorf("%t, a file that no function wrote: %v", emptied, err)
	}
}

func writeBytes(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
}
