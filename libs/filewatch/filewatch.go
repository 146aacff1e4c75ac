// Package filewatch tells when the content of a file or of a folder changes, so
// that configuration can change without a restart.
package filewatch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long a file must rest before it is read: editors and
	// Kubernetes write in several steps.
	settle = 50 * time.Millisecond
	// poll is how often a file is read without any notice: some file systems give
	// none, a folder may be made only later, and the system's notices may be used up.
	poll = 10 * time.Second
)

// Watch calls changed with the content of the file at path whenever it differs
// from what it was, beginning with last, and with an error when the file cannot be
// read any more. It returns when ctx ends. Calls do not overlap.
func Watch(ctx context.Context, log *slog.Logger, path string, last []byte, changed func(content []byte, err error)) {
	w := &watch{path: path, last: last, readable: true, changed: changed}
	WatchFolder(ctx, log, filepath.Dir(path), w.read)
}

// WatchFolder calls look at once, whenever something in the folder at path may
// have changed, and from time to time. It returns when ctx ends. Calls do not overlap.
//
// A file is watched through its folder too: Kubernetes replaces the files of a
// mounted ConfigMap or Secret by switching a symbolic link beside them.
func WatchFolder(ctx context.Context, log *slog.Logger, path string, look func()) {
	follow(ctx, log, path, look, fsnotify.NewWatcher)
}

// follow is WatchFolder with the notices of a watcher. If there can be none, what is
// left is the look from time to time: a node may have given all its notices to others,
// and a change that is found late is better than one that is not found.
func follow(ctx context.Context, log *slog.Logger, path string, look func(), newWatcher func() (*fsnotify.Watcher, error)) {
	watcher, err := newWatcher()
	if err != nil {
		log.WarnContext(ctx, "the system gives no notice of changes, so they are found a few seconds late: if its limit is reached, raise fs.inotify.max_user_instances",
			"folder", path, "interval", poll, "error", err)
		watcher = &fsnotify.Watcher{} // its channels are nil: nothing ever comes
	} else {
		defer func() { _ = watcher.Close() }()
	}
	polling := time.NewTicker(poll)
	defer polling.Stop()
	settled := time.NewTimer(0) // a change before the watch is found at once
	defer settled.Stop()
	for {
		if err == nil {
			// Adding a folder again is no error, and finds one that was made anew.
			_ = watcher.Add(path)
		}
		select {
		case <-ctx.Done():
			return
		case <-watcher.Events:
			settled.Reset(settle)
		case <-watcher.Errors: // such as an overflow: read to be sure
			settled.Reset(settle)
		case <-settled.C:
			look()
		case <-polling.C:
			look()
		}
	}
}

// watch is what is known of a file.
type watch struct {
	path     string
	last     []byte
	readable bool
	changed  func([]byte, error)
}

// read reports the file if it is not as it was.
func (w *watch) read() {
	content, err := os.ReadFile(w.path)
	switch {
	case err != nil && w.readable:
		w.readable = false
		w.changed(nil, fmt.Errorf("read changed file: %w", err))
	case err == nil && (!w.readable || !bytes.Equal(content, w.last)):
		w.readable, w.last = true, content
		w.changed(content, nil)
	}
}
