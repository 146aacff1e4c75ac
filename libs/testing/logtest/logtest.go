// SPDX-License-Identifier: Apache-2.0

// Package logtest stores log lines in memory, so that a test can read them while the program still writes them.
package logtest

import (
	"strings"
	"sync"
)

// Log is a log in memory, which is safe for concurrent use. The zero Log is empty and ready to use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the whole log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often a text occurs in the log.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Line returns the first line that contains the given text. It returns an empty string if no line contains the text.
func (l *Log) Line(with string) string {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, with) {
			return line
		}
	}
	return ""
}
