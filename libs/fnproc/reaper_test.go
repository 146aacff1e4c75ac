// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// startReaper returns a Runner whose Reaper runs until the test ends.
func startReaper(t *testing.T) *fnproc.Runner {
	t.Helper()
	reaper, err := fnproc.NewReaper(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { reaper.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return fnproc.NewRunner(fnproc.Config{Reaper: reaper})
}

func TestReaperKillsDaemons(t *testing.T) {
	runner := startReaper(t)
	cmd, dir := install(t, "daemon")
	for range 3 {
		got, err := runner.Run(t.Context(), cmd, []byte(input))
		if err != nil || string(got.Output) != input {
			t.Fatalf("Run: %v, %s, output %q", err, got.Status, got.Output)
		}
	}
	testfn.AssertNoneLeft(t, dir)
}

// TestReaperWaitsForNoEvaluation has functions leave daemons while another function hangs:
// they are killed, and no zombie is left.
func TestReaperWaitsForNoEvaluation(t *testing.T) {
	runner := startReaper(t)
	hang, hangDir := install(t, "hang")
	daemons, daemonsDir := install(t, "daemon=20")
	ctx, cancel := context.WithCancel(t.Context())
	var older sync.WaitGroup
	older.Go(func() { _, _ = runner.Run(ctx, hang, nil) })
	testfn.AwaitRunning(t, hangDir, 1)
	for range 5 {
		if _, err := runner.Run(t.Context(), daemons, nil); err != nil {
			t.Fatal(err)
		}
	}
	testfn.AssertNoneLeft(t, daemonsDir)
	awaitChildren(t, 1)
	testfn.AwaitRunning(t, hangDir, 1)
	cancel()
	older.Wait()
}

// TestReaperSparesSessionsThatRun has an orphan in the session of a function that runs: it
// ends with the function, and not before.
func TestReaperSparesSessionsThatRun(t *testing.T) {
	runner := startReaper(t)
	cmd, dir := install(t, "hang-with-orphan")
	daemon, daemonDir := install(t, "daemon")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _, _ = runner.Run(ctx, cmd, nil) })
	testfn.AwaitRunning(t, dir, 2)
	for range 2 { // when the second daemon is gone, the scan that ended the first is over
		if _, err := runner.Run(t.Context(), daemon, nil); err != nil {
			t.Fatal(err)
		}
		testfn.AssertNoneLeft(t, daemonDir)
	}
	testfn.AwaitRunning(t, dir, 2)
	cancel()
	running.Wait()
	testfn.AssertNoneLeft(t, dir)
}

func TestReaperLeavesOthersAlone(t *testing.T) {
	runner := startReaper(t)
	hang, _ := install(t, "hang")
	other := exec.Command(hang.Path)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	daemon, daemonDir := install(t, "daemon")
	for range 2 { // when the second daemon is gone, the scan that ended the first is over
		if _, err := runner.Run(t.Context(), daemon, nil); err != nil {
			t.Fatal(err)
		}
		testfn.AssertNoneLeft(t, daemonDir)
	}
	if err := other.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("a child of other code of the program ended with %v, want signal: terminated", err)
	}
}

// TestReaperLeavesStatuses runs many evaluations at once, each of whose ends makes the
// Reaper scan: it must take none for an orphan, and leave no orphan unreaped.
func TestReaperLeavesStatuses(t *testing.T) {
	runner := startReaper(t)
	dir := t.TempDir()
	testfn.Install(t, dir, "orphan", "exit1-silent")
	want := map[string]string{"orphan": "exit status 0", "exit1-silent": "exit status 1"}
	var runs sync.WaitGroup
	for name, status := range want {
		cmd := fnproc.Command{Path: dir + "/" + name, MaxOutput: maxOutput, MaxLog: maxLog}
		for range 4 {
			runs.Go(func() {
				for range 20 {
					got, err := runner.Run(t.Context(), cmd, []byte(input))
					if err != nil || got.Status != status {
						t.Errorf("%s: %v, %s, want %s", name, err, got.Status, status)
					}
				}
			})
		}
	}
	runs.Wait()
	awaitChildren(t, 0)
}

// awaitChildren waits until this process has n children. Children that have ended, but were
// not reaped, count.
func awaitChildren(t *testing.T, n int) {
	t.Helper()
	await.Equal(t, "children of this process", func() (children int) {
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		for _, list := range lists {
			some, _ := os.ReadFile(list) // a thread may have ended
			children += len(bytes.Fields(some))
		}
		return children
	}, n)
}

// TestACutOutputIsNoSuccess has a child of a function hold its output until the deadline, in the function's session
// and in another one, beside a Reaper.
func TestACutOutputIsNoSuccess(t *testing.T) {
	for _, function := range []string{"hold=10m", "hold=10m,daemon"} {
		t.Run(function, func(t *testing.T) {
			runner := startReaper(t)
			cmd, dir := install(t, function)
			// On a busy machine, a short deadline may pass before the function has exited.
			for timeout, held := 200*time.Millisecond, false; !held; timeout *= 4 {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				got, err := runner.Run(ctx, cmd, []byte("a list"))
				cancel()
				stopped, ok := errors.AsType[*fnproc.StoppedError](err)
				held = ok && stopped.OutputHeld
				if fault.Of(err) != fault.DeadlineExceeded || (!held && timeout > time.Minute) {
					t.Fatalf("the function ends with %v, output %q, want that its output is held", err, got.Output)
				}
				testfn.AssertNoneLeft(t, dir)
			}
		})
	}
}

// TestFloodsOfPacketsDoNotDelayTheEnd has a daemon hold the output, and log packets (O_DIRECT) until its function is
// killed. A packet's rest is lost if a read is shorter, so we read fewer bytes than the pipe contains.
func TestFloodsOfPacketsDoNotDelayTheEnd(t *testing.T) {
	runner := startReaper(t)
	cmd, dir := install(t, "try=log-packets")
	cmd.MaxLog = 10 // so that the buffer is smaller than two packets
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := runner.Run(ctx, cmd, nil)
		cancel()
		if fault.Of(err) != fault.DeadlineExceeded {
			t.Fatalf("the function ends with %v, want its deadline", err)
		}
		testfn.AssertNoneLeft(t, dir)
	}
}
