// SPDX-License-Identifier: Apache-2.0

// Package filewatch reports changes of the content of a file or of a directory, so that
// configuration can change without a restart.
package filewatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is the time for which a file must be unchanged before it is read: editors and
	// Kubernetes write in several steps.
	settle = 50 * time.Millisecond
	// poll is the interval at which a file is read without a notification. Some file systems send
	// none, a directory may be created later, and the node may have reached its inotify limit.
	poll = 10 * time.Second
)

// Watch calls changed with the content of the file at path whenever it differs from the previous content, initially
// last, and with an error when the file is no longer readable. It returns when ctx is done. Calls do not overlap.
func Watch(ctx context.Context, log *slog.Logger, path string, last []byte, changed func(content []byte, err error)) {
	w := &watch{path: path, last: last, readable: true, changed: changed}
	WatchDirectory(ctx, log, filepath.Dir(path), w.readChanges)
}

// Follow calls use with the parsed content of the file at path, whenever the content differs from the previous content,
// initially last. Content that cannot be read or parsed changes nothing and is logged; what names the file in the log.
// A file may be missing from the start. Follow returns when ctx is done.
func Follow[T any](ctx context.Context, log *slog.Logger, what, path string, last []byte,
	parse func(content []byte) (T, error), use func(T),
) {
	Watch(ctx, log, path, last, func(content []byte, err error) {
		if last == nil && errors.Is(err, fs.ErrNotExist) {
			return
		}
		var value T
		if err == nil {
			value, err = parse(content)
		}
		if err != nil {
			log.ErrorContext(ctx, "file not applied, the last good content stays in use", "of", what, "file", path, "error", err)
			return
		}
		last = content
		use(value)
	})
}

// WatchDirectory calls look once immediately, whenever something in the directory at path may have changed, and
// periodically. It returns when ctx is done. Calls do not overlap.
//
// A file is also watched through its directory: Kubernetes replaces the files of a mounted ConfigMap or Secret by
// switching a symbolic link next to them.
func WatchDirectory(ctx context.Context, log *slog.Logger, path string, look func()) {
	followDirectory(ctx, log, path, look, fsnotify.NewWatcher)
}

// followDirectory is WatchDirectory with the notifications of a watcher. If there is no watcher, because other programs
// on the node use up the inotify limit, it polls: a late change is better than a missed change.
func followDirectory(ctx context.Context, log *slog.Logger, path string, look func(),
	newWatcher func() (*fsnotify.Watcher, error),
) {
	watcher, err := newWatcher()
	if err != nil {
		log.WarnContext(ctx, "file notifications unavailable; polling every few seconds: if the node's limit is reached, "+
			"raise fs.inotify.max_user_instances",
			"directory", path, "interval", poll, "error", err)
		runLoop(ctx, look, new(fsnotify.Watcher), func() {}) // its channels are nil: no event ever arrives
		return
	}
	defer func() { _ = watcher.Close() }()
	// Adding a directory again is no error, and finds a directory that was created again.
	runLoop(ctx, look, watcher, func() { _ = watcher.Add(path) })
}

// runLoop calls look after events of the watcher, and periodically, until ctx is done. It calls add before each wait.
func runLoop(ctx context.Context, look func(), watcher *fsnotify.Watcher, add func()) {
	polling := time.NewTicker(poll)
	defer polling.Stop()
	settled := time.NewTimer(0) // finds a change from before the watch at once
	defer settled.Stop()
	for {
		add()
		select {
		case <-ctx.Done():
			return
		case <-watcher.Events:
			settled.Reset(settle)
		case <-watcher.Errors: // such as an overflow: read the file to be sure
			settled.Reset(settle)
		case <-settled.C:
			look()
		case <-polling.C:
			look()
		}
	}
}

// watch is the last seen state of a file.
type watch struct {
	path     string
	last     []byte
	readable bool
	changed  func([]byte, error)
}

// readChanges reports the file if it has changed.
func (w *watch) readChanges() {
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
