// SPDX-License-Identifier: Apache-2.0

package servermain_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/servermain"
)

// slackened is the first argument of a test program that only slackens, and prints what it has.
const slackened = "slackened"

func TestMain(m *testing.M) {
	if len(os.Args) == 1 || os.Args[1] != slackened {
		os.Exit(m.Run())
	}
	servermain.Slacken()
	others := make(map[int]bool) // the slack of threads
	for range 3 {
		got := make(chan int)
		go func() {
			runtime.LockOSThread() // for good: the next one is another thread
			now, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
			got <- now
		}()
		others[<-got] = true
	}
	_, _ = fmt.Fprintln(os.Stdout, os.Getpid(), others, os.Args[1:])
}

// TestSlacken starts a server that slackens: with the slack that is usual, and with more.
func TestSlacken(t *testing.T) {
	for _, c := range []struct{ before, want time.Duration }{
		{50 * time.Microsecond, time.Millisecond}, // the usual one
		{3 * time.Millisecond, 3 * time.Millisecond},
	} {
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(c.before), 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], slackened, "another argument")
		out, err := cmd.CombinedOutput()
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0)
		runtime.UnlockOSThread()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		want := fmt.Sprintf("%d map[%d:true] [slackened another argument]", cmd.Process.Pid, c.want)
		if got := strings.TrimSpace(string(out)); got != want {
			t.Errorf("with a slack of %v before, it has %q, want %q", c.before, got, want)
		}
	}
}
