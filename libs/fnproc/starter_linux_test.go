// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
)

// TestLaunchersEndWithTheirStarter closes a starter, as the end of the program does, while its launcher runs.
func TestLaunchersEndWithTheirStarter(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	starter := fnproc.NewStarter()
	cmd := launched("echo >"+begun+"; exec sleep 1000", &fnproc.Launch{Starter: starter})
	status := make(chan string)
	go func() {
		out, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
		if err != nil {
			t.Errorf("got %v, want an outcome", err)
		}
		status <- out.Status
	}()
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	starter.Close()
	if got := <-status; got != "signal: killed" {
		t.Errorf("status %q, want an end", got)
	}
	_, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
	if err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("error %v, want none started after Close", err)
	}
}
