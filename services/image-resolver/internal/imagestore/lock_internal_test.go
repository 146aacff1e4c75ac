// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"log/slog"
	"path"
	"testing"
)

// TestFailedPullKeepsTheNextPullsLock has another process begin a pull of an image that has just been removed again,
// because it did not fit the store.
func TestFailedPullKeepsTheNextPullsLock(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store {
		store, err := Open(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(store.Close)
		return store
	}
	failed, next, third := open(), open(), open()
	const key = "image"
	name := path.Join(locksDir, key)
	lock, err := failed.tryLock(name, exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if err := failed.removeLocked(key); err != nil {
		t.Fatal(err)
	}
	nextLock, err := next.tryLock(name, exclusive)
	if err != nil {
		t.Fatal(err)
	}
	failed.unlockPulled(key, lock)
	if lock, err := third.tryLock(name, exclusive); !errors.Is(err, errBusy) {
		_ = lock.Close()
		t.Errorf("got %v, want %v: two processes pull the image at the same time", err, errBusy)
	}
	next.unlockPulled(key, nextLock)
	if _, err := third.root.Lstat(name); err == nil {
		t.Error("the lock file of an image that was not pulled is left")
	}
}
