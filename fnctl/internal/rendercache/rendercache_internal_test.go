// SPDX-License-Identifier: Apache-2.0

package rendercache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
)

// function counts its evaluations, and returns its input.
type function struct {
	mu    sync.Mutex
	calls int
	err   error
}

func (f *function) Evaluate(_ context.Context, req pipeline.Request) (pipeline.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return pipeline.Response{ResourceList: req.ResourceList, Log: []byte("log of " + req.Image)}, f.err
}

func openTest(t *testing.T, dir string, maxSize int64, fingerprint Fingerprint) (*Cache, *function) {
	t.Helper()
	f := &function{}
	c, err := open(dir, maxSize, fingerprint, f)
	if err != nil {
		t.Fatal(err)
	}
	return c, f
}

func byImage(_ context.Context, image, tag string) (string, error) { return image + tag, nil }

func evaluate(t *testing.T, c *Cache, image, input string) {
	t.Helper()
	resp, err := c.Evaluate(t.Context(), pipeline.Request{Image: image, ResourceList: []byte(input)})
	if err != nil || string(resp.ResourceList) != input || string(resp.Log) != "log of "+image {
		t.Errorf("%v, %q, %q", err, resp.ResourceList, resp.Log)
	}
}

// TestSameImageAndInputRunOnce evaluates in processes that share a directory, one after the other.
func TestSameImageAndInputRunOnce(t *testing.T) {
	dir := t.TempDir()
	first, f := openTest(t, dir, maxBytes, byImage)
	for _, input := range []string{"a", "b", "a", ""} {
		evaluate(t, first, "fn:v1", input)
	}
	evaluate(t, first, "fn:v2", "a")
	if f.calls != 4 {
		t.Errorf("%d evaluations, want 4", f.calls)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	second, f := openTest(t, dir, maxBytes, byImage)
	evaluate(t, second, "fn:v1", "b")
	if f.calls != 0 {
		t.Errorf("%d evaluations in the next process, want none", f.calls)
	}
}

// TestWhatIsNotKeptRunsAgain evaluates functions that fail, whose fingerprint is not known, or whose tag moves, and
// reads an entry that is damaged.
func TestWhatIsNotKeptRunsAgain(t *testing.T) {
	c, f := openTest(t, t.TempDir(), maxBytes, byImage)
	f.err = errors.New("failed")
	for range 2 {
		if _, err := c.Evaluate(t.Context(), pipeline.Request{Image: "fn:v1"}); !errors.Is(err, f.err) {
			t.Error(err)
		}
	}
	moves := 0
	for name, fingerprint := range map[string]Fingerprint{
		"network": func(context.Context, string, string) (string, error) { return "", nil },
		"unknown": func(context.Context, string, string) (string, error) { return "", errors.New("unknown") },
		"moving":  func(context.Context, string, string) (string, error) { moves++; return string(rune(moves)), nil },
	} {
		c, other := openTest(t, t.TempDir(), maxBytes, fingerprint)
		evaluate(t, c, "fn:v1", "a")
		evaluate(t, c, "fn:v1", "a")
		if entries, _ := os.ReadDir(c.dir); other.calls != 2 || len(entries) != 0 {
			t.Errorf("%s: %d evaluations and %d entries, want 2 and none", name, other.calls, len(entries))
		}
	}
	if f.calls != 2 {
		t.Errorf("%d evaluations of a function that fails, want 2", f.calls)
	}
	f.err = nil
	evaluate(t, c, "fn:v1", "a")
	entries, err := os.ReadDir(c.dir)
	if err != nil || len(entries) != 1 {
		t.Fatal(err, entries)
	}
	for _, damage := range []string{"", "short", string(make([]byte, 100))} {
		if err := os.WriteFile(filepath.Join(c.dir, entries[0].Name()), []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		before := f.calls
		evaluate(t, c, "fn:v1", "a")
		if f.calls != before+1 {
			t.Errorf("the damaged entry %q was used", damage)
		}
	}
}

// TestLeastRecentlyUsedEntriesAreRemoved closes a cache that is too large.
func TestLeastRecentlyUsedEntriesAreRemoved(t *testing.T) {
	c, f := openTest(t, t.TempDir(), 150, byImage) // two entries of 55 bytes
	long := time.Now().Add(-24 * time.Hour)
	for i, input := range []string{"a", "b", "c"} {
		evaluate(t, c, "fn:v1", input)
		entries, _ := os.ReadDir(c.dir)
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil && info.ModTime().After(long.Add(time.Hour)) {
				at := long.Add(time.Duration(i) * time.Second)
				if err := os.Chtimes(filepath.Join(c.dir, entry.Name()), at, at); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, name := range []string{"new-1", "new-2"} {
		if err := os.WriteFile(filepath.Join(c.dir, name), make([]byte, 500), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(c.dir, "new-1"), long, long); err != nil {
		t.Fatal(err)
	}
	evaluate(t, c, "fn:v1", "a") // now b was used least recently
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(c.dir); len(entries) != 3 {
		t.Errorf("%d files are left, want two entries and the file that is being written", len(entries))
	}
	calls := f.calls
	evaluate(t, c, "fn:v1", "a")
	evaluate(t, c, "fn:v1", "c")
	if f.calls != calls {
		t.Error("a recently used entry was removed")
	}
}

// TestConcurrentUse evaluates the same from several processes and goroutines.
func TestConcurrentUse(t *testing.T) {
	dir := t.TempDir()
	var running sync.WaitGroup
	for range 4 {
		c, _ := openTest(t, dir, 100, byImage)
		running.Go(func() {
			for i := range 50 {
				evaluate(t, c, "fn:v1", string(rune('a'+i%3)))
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
}
