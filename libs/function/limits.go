// SPDX-License-Identifier: Apache-2.0

package function

import (
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// framing is an upper bound on a response's own bytes.
const framing = 64

// minMessageBytes is the smallest sensible message limit.
const minMessageBytes = 64 << 10

// Limits bound what a function may write, in bytes.
type Limits struct {
	// MessageBytes is the most that a response may have: output and log together.
	MessageBytes int
	// LogBytes is how much is kept of what a function logs.
	LogBytes int
}

// Check adds a problem if the message limit, which is the setting of a field, is not sensible.
func (l Limits) Check(checks *config.Checks, messageField string) {
	sensible := l.MessageBytes >= minMessageBytes && l.MessageBytes <= 1<<30
	checks.That(sensible, messageField, l.MessageBytes, "65536 to 1073741824 bytes")
}

// output is how much a function may write to stdout.
func (l Limits) output() int64 { return int64(l.MessageBytes - framing) }

// log is how much a function may write to stderr.
func (l Limits) log() int64 { return int64(l.LogBytes) }

// fit shortens the log of a function that succeeded if the response would become
// too large: the output must arrive, and of the log both ends.
func (l Limits) fit(output, log []byte) []byte {
	const note = 64
	left := l.MessageBytes - framing - len(output)
	if len(log) <= left {
		return log
	}
	if left < note {
		return nil
	}
	return []byte(excerpt.Middle(string(log), left-note))
}
