// Package logtest keeps what is logged in memory, for tests that read it while the
// program goes on.
package logtest

import (
	"strings"
	"sync"
)

// Log is a log in memory. The zero Log is empty and ready to use, by any number of
// goroutines.
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

// String returns everything that has been logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often a text was logged.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }

// Line returns the first line with a text in it; nothing if there is none.
func (l *Log) Line(with string) string {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, with) {
			return line
		}
	}
	return ""
}
