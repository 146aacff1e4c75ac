// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSpareProcessMayNotTalk: one that wrote too much is not taken any more.
func TestSpareProcessMayNotTalk(t *testing.T) {
	var s spareState
	s.state.Store(stateSpare)
	if s.tooMuch(maxSpareBytes) || s.inUse() {
		t.Error("what a spare process may write is too much")
	}
	if !s.tooMuch(maxSpareBytes+1) || s.changeState(stateInUse) {
		t.Error("a spare process that wrote too much can be taken")
	}
	var evaluated spareState
	if evaluated.tooMuch(maxSpareBytes + 1) {
		t.Error("the bound is for spare processes only")
	}
}

// TestIdentify changes a file such that its size and its time of modification stay.
func TestIdentify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fn")
	write := func(text string) (fileID, syscall.Stat_t) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		var stat syscall.Stat_t
		if err := syscall.Stat(path, &stat); err != nil {
			t.Fatal(err)
		}
		id, ok := identifyProgram(Command{Path: "fn", Dir: filepath.Dir(path)})
		if !ok {
			t.Fatal("the file is not there")
		}
		return id, stat
	}
	before, old := write("one")
	if before.inode != old.Ino || before.device != old.Dev {
		t.Errorf("%+v is not the file %d of device %d", before, old.Ino, old.Dev)
	}
	for start := time.Now(); time.Since(start) < 5*time.Minute; {
		after, now := write("two")
		if now.Ctim == old.Ctim {
			continue // the file system's clock has not moved
		}
		if after == before {
			t.Error("a file that was changed counts as the same one")
		}
		return
	}
	t.Error("the file system's clock stands still")
}
