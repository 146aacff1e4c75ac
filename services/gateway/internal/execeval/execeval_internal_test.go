// SPDX-License-Identifier: Apache-2.0

package execeval

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// lines are the lines of a log.
type lines chan string

// Write implements io.Writer.
func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// await returns when a line has a text.
func (l lines) await(t *testing.T, text string) {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, text) {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("no line of the log has %q", text)
		}
	}
}

func TestBrokenFileKeepsTheLastGoodOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("functions: [{function: fn, images: ['fn:v1', 'fn:v1']}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := make(lines, 100)
	tel := telemetry.Discard()
	tel.Log = slog.New(slog.NewTextHandler(logs, nil))
	e, err := New(Config{
		File: file, Functions: "/functions", DefaultPrefix: "example.com", Service: function.ServiceConfig{Telemetry: tel},
	})
	if err != nil {
		t.Fatal(err)
	}
	logs.await(t, "names an image twice")
	logs.await(t, "names a function that is not there")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Watch(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	if err := os.WriteFile(file, []byte("functions: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	logs.await(t, "keeping its last valid content")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	logs.await(t, "no such file")
	name := imagename.Name{Repository: "example.com/fn", Tag: "v1"}
	if got := e.table.Load().binaries[name.Key()]; got != "/functions/fn" {
		t.Errorf("after a broken file fn:v1 is mapped to %q", got)
	}
}
