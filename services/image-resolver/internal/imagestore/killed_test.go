// SPDX-License-Identifier: Apache-2.0

//go:build linux

package imagestore_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is what a child process writes. The channel is closed when it has written something.
type output struct {
	text  bytes.Buffer
	once  sync.Once
	begun chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	defer o.once.Do(func() { close(o.begun) })
	return o.text.Write(p)
}

// pulls reports whether the process was in the middle of a pull when it ended.
func (o *output) pulls() bool {
	text := o.text.String()
	return strings.LastIndex(text, pulling) > strings.LastIndex(text, pulled)
}

// TestKilledPullsLeaveNothing kills processes at any point of a pull, until fifty were in the middle of one.
// What is in the store is whole at any time, and the next process removes the rest.
func TestKilledPullsLeaveNothing(t *testing.T) {
	source, dir := &images{dir: t.TempDir()}, t.TempDir()
	digests, files := someImages(t, source, 2)
	longest := 100 * time.Millisecond
	killed, inPull := 0, 0
	for i := 0; inPull < 50; i++ {
		if i == 2000 {
			t.Fatalf("of %d processes %d were killed in the middle of a pull, want 50", i, inPull)
		}
		cmd, _ := child(t, dir, source, digests)
		out := &output{begun: make(chan struct{})}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-out.begun
		begun := time.Now()
		kill := time.AfterFunc(rand.N(longest), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		kill.Stop()
		if err == nil { // it was done before
			longest = max(time.Since(begun)/2, time.Millisecond)
			prune(t, dir, source)
			continue
		}
		killed++
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != -1 {
			t.Fatalf("process %d: %v\n%s", i, err, out.text.String())
		}
		if out.pulls() {
			inPull++
		}
		expectWhole(t, dir, files)
		if i%2 == 0 { // the others find what it left
			prune(t, dir, source)
		}
	}
	t.Logf("%d processes were killed, %d in the middle of a pull", killed, inPull)
	store := newStore(t, dir, source) // which removes what they left
	for _, digest := range digests {
		open(t, store, digest).Close()
	}
	expectWhole(t, dir, files)
	if _, err := store.Prune(t.Context(), 0); err != nil || left(t, dir) != "" {
		t.Errorf("%q is left, %v", left(t, dir), err)
	}
}

// prune empties a store.
func prune(t *testing.T, dir string, source *images) {
	t.Helper()
	if _, err := newStore(t, dir, source).Prune(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
}
