// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestEarlierOutputIsReadAfterDeadline has a process write again after each read of its log, past the deadline. What it
// wrote before the deadline is kept, and the rest does not delay the end.
func TestEarlierOutputIsReadAfterDeadline(t *testing.T) {
	pipe, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = pipe.Close(), writer.Close() }()
	write := func(text string) {
		t.Helper()
		if _, err := writer.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	earlier := strings.Repeat("earlier ", 1000)
	write(earlier)
	if err := pipe.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	log := newCollector("log", pipe, 1<<20, minBuffer)
	log.cut = true
	reads := 0
	endless := func(int) bool {
		write("later")
		reads++
		return reads > 1000
	}
	if err := log.readAll(endless); err != nil || string(log.buf) != earlier {
		t.Errorf("%v after %d reads, want the end after a log of %d bytes, got %d", err, reads, len(earlier), len(log.buf))
	}
}
