// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestErrorsAreLoggedSeldom has a collector fail every five seconds for an hour.
func TestErrorsAreLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		handle, internal := newErrorLogs(slog.New(slog.NewJSONHandler(&lines, nil)))
		for n := range 720 {
			handle(fmt.Errorf("%d: %w", n, errors.New("connection refused")))
			internal.Error(nil, "dropped")
			<-time.After(5 * time.Second)
		}
		all := lines.String()
		if n := strings.Count(all, "\n"); n != 60 {
			t.Errorf("%d lines in an hour, want 60:\n%.500s", n, all)
		}
		for _, want := range []string{`"level":"WARN"`, `"unlogged":23`, `connection refused`} {
			if !strings.Contains(all, want) {
				t.Errorf("no %s in:\n%.500s", want, all)
			}
		}
	})
}

// TestLogsAreTextOnTerminals writes to a pipe and to a character device, which terminals are.
func TestLogsAreTextOnTerminals(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	for format, want := range map[string][3]bool{ // whether a pipe, a device and a buffer get text
		"auto": {false, true, false}, "json": {}, "text": {true, true, true},
	} {
		for i, w := range []io.Writer{write, device, new(bytes.Buffer)} {
			if got := writesText(format, w); got != want[i] {
				t.Errorf("the format %q writes text to %T %d: %v", format, w, i, got)
			}
		}
	}
	_ = write.Close()
}
