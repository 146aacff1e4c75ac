// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestChangeIsFoundWithoutNotices watches on a node whose inotify instances are all in use: the
// watch logs that, and finds changes by polling.
func TestChangeIsFoundWithoutNotices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var contents []string
		w := &watch{path: path, last: []byte("one"), readable: true, changed: func(content []byte, err error) {
			if err != nil {
				t.Error(err)
			}
			contents = append(contents, string(content))
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			followDirectory(ctx, slog.New(slog.NewTextHandler(&log, nil)), filepath.Dir(path), w.readChanges,
				func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE })
		}()
		synctest.Wait()
		if err := os.WriteFile(path, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(poll + time.Second)
		cancel()
		<-ended
		if len(contents) != 1 || contents[0] != "two" {
			t.Errorf("reported %q, want the change once", contents)
		}
		if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "too many open files") {
			t.Errorf("logged %q, want a warning with the cause", log.String())
		}
	})
}
