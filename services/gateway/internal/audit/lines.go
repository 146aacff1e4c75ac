// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// encode returns events as lines of JSON.
func encode(events []Event) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, e := range events {
		if err := encoder.Encode(e); err != nil {
			return nil, fmt.Errorf("encode an audit event: %w", err)
		}
	}
	return out.Bytes(), nil
}

// lines writes events as lines of JSON.
type lines struct {
	w io.Writer
	// torn reports whether the last write ended within a line.
	torn bool
}

// Lines returns an output of lines of JSON, which closes nothing.
func Lines(w io.Writer) Output { return &lines{w: w} }

// Write implements Output. After a write that ended within a line, the next one begins on a new line.
func (l *lines) Write(_ context.Context, events []Event) error {
	content, err := encode(events)
	if err != nil {
		return err
	}
	if l.torn {
		content = append([]byte{'\n'}, content...)
	}
	n, err := l.w.Write(content)
	if n > 0 {
		l.torn = content[n-1] != '\n'
	}
	return err
}

// Close implements Output.
func (l *lines) Close() error { return nil }

// file is an output that appends lines to a file.
type file struct {
	path string
	open *os.File
	lines
}

// OpenFile returns an output of lines of JSON at the end of a file, which is created if it is not there.
// When the file was renamed or removed, as programs that rotate logs do, it is created again.
func OpenFile(path string) (Output, error) {
	f := &file{path: path}
	return f, f.reopen()
}

// reopen opens the file that has the path now.
func (f *file) reopen() error {
	opened, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open the audit log: %w", err)
	}
	if f.open != nil {
		_ = f.open.Close()
	}
	f.open, f.lines = opened, lines{w: opened}
	return nil
}

// Write implements Output.
func (f *file) Write(ctx context.Context, events []Event) error {
	if f.moved() {
		if err := f.reopen(); err != nil {
			return err
		}
	}
	return f.lines.Write(ctx, events)
}

// moved reports whether the path leads to another file than the open one, or to none.
func (f *file) moved() bool {
	now, err := os.Stat(f.path)
	if err != nil {
		return true
	}
	opened, err := f.open.Stat()
	return err != nil || !os.SameFile(now, opened)
}

// Close implements Output.
func (f *file) Close() error { return f.open.Close() }
