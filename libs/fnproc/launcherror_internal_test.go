// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"syscall"
	"testing"
)

// TestLauncherThatIsKilledForMemory has launchers and functions fail in a sandbox whose memory is full.
func TestLauncherThatIsKilledForMemory(t *testing.T) {
	const words = "unshare: sigprocmask unblock failed: Invalid argument\n"
	l := &Launch{Messages: []string{"unshare: "}}
	for _, tc := range []struct {
		reason string
		log    string
		limit  int64
		want   syscall.Signal
	}{
		{"the launcher was killed", words, 1 << 20, syscall.SIGKILL},
		{"the memory was not full", words, 0, 0},
		{"the function has failed by itself", "killed: my child\n", 1 << 20, 0},
	} {
		out := Outcome{ExitCode: 1, Status: "exit status 1", Log: []byte(tc.log), MemoryLimit: tc.limit}
		l.killed(&out)
		if out.Signal != tc.want || (out.Log == nil) != (tc.want != 0) {
			t.Errorf("got %+v, want signal %v: %s", out, tc.want, tc.reason)
		}
	}
}
