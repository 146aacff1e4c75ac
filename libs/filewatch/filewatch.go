// SPDX-License-Identifier: Apache-2.0

// Package filewatch reports changes of a file's content or of a directory, so that programs can apply a new
// configuration without a restart.
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
	// settle is the time that a file must stay unchanged before we read it, because editors and Kubernetes change a file
	// in several steps.
	settle = 50 * time.Millisecond
	// poll is the interval at which we read a file even without a notification of a change. Some file systems send no
	// notifications. Notifications are also missing if the directory did not exist before, or if the node has reached its
	// inotify limit.
	poll = 10 * time.Second
)

// Watch observes the file at path, and reports each change of its content to the given callback. The argument last is
// the content that the caller already has. When the file becomes unreadable, Watch reports an error to the callback.
// Calls of the callback do not overlap. Watch returns when ctx is done.
func Watch(ctx context.Context, log *slog.Logger, path string, last []byte, changed func(content []byte, err error)) {
	w := &watch{path: path, last: last, readable: true, changed: changed}
	WatchDirectory(ctx, log, filepath.Dir(path), w.readChanges)
}

// Follow parses a file whenever its content changes, and passes the result to the callback use. The argument last is
// the content that the caller already uses. If last is nil, the file may be missing at first. If Follow cannot read or
// parse the file, it logs an error, in which the argument what describes the file. Follow returns when ctx is done.
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
			log.ErrorContext(ctx, "file not applied, keeping its last valid content", "of", what, "file", path, "error", err)
			return
		}
		last = content
		use(value)
	})
}

// WatchDirectory calls the given callback at the start, after changes in the directory at path, and periodically. Calls
// do not overlap. WatchDirectory returns when ctx is done. Use it even for a single file of a mounted ConfigMap or
// Secret, because Kubernetes replaces such files by switching a symbolic link next to them.
func WatchDirectory(ctx context.Context, log *slog.Logger, path string, look func()) {
	followDirectory(ctx, log, path, look, fsnotify.NewWatcher)
}

// followDirectory implements WatchDirectory with the notifications of a watcher. If newWatcher fails, for example
// because the node's inotify limit is reached, followDirectory polls the directory and notices changes later.
func followDirectory(ctx context.Context, log *slog.Logger, path string, look func(),
	newWatcher func() (*fsnotify.Watcher, error),
) {
	watcher, err := newWatcher()
	if err != nil {
		log.WarnContext(ctx, "file notifications unavailable; polling every few seconds: if the node's limit is reached, "+
			"raise fs.inotify.max_user_instances",
			"directory", path, "interval", poll, "error", err)
		runLoop(ctx, look, new(fsnotify.Watcher), func() {}) // the channels of an empty Watcher never send
		return
	}
	defer func() { _ = watcher.Close() }()
	// A watch ends when its directory is deleted. We add the directory before each wait, so that we also notice a
	// directory that is created again.
	runLoop(ctx, look, watcher, func() { _ = watcher.Add(path) })
}

// runLoop calls the callback look after events of the watcher, and periodically, until ctx is done. Before each wait,
// it calls the callback add, which makes the watcher watch the directory again if the directory was recreated.
func runLoop(ctx context.Context, look func(), watcher *fsnotify.Watcher, add func()) {
	polling := time.NewTicker(poll)
	defer polling.Stop()
	settled := time.NewTimer(0) // makes the first call of look immediate
	defer settled.Stop()
	for {
		add()
		select {
		case <-ctx.Done():
			return
		case <-watcher.Events:
			settled.Reset(settle)
		case <-watcher.Errors: // for example an overflow: events may be lost
			settled.Reset(settle)
		case <-settled.C:
			look()
		case <-polling.C:
			look()
		}
	}
}

// watch contains the path of a file and the result of its latest read.
type watch struct {
	path     string
	last     []byte
	readable bool
	changed  func([]byte, error)
}

// readChanges reads the file and calls w.changed if the content has changed or the file is no longer readable.
func (w *watch) readChanges() {
	content, err := os.ReadFile(w.path)
	switch {
	case err != nil && w.readable:
		w.readable = false
		w.changed(nil, fmt.Errorf("read changed file: %w", err))
	case err == nil && (!w.readable || !bytes.Equal(content, w.last)):
		w.readable = true
		w.last = content
		w.changed(content, nil)
	}
}
