package fnproc_test

import (
	"context"
	"log/slog"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// startReaper returns a Runner whose Reaper runs until the test ends.
func startReaper(t *testing.T) fnproc.Runner {
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
	return fnproc.Runner{Reaper: reaper}
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

func TestReaperWaitsForEvaluations(t *testing.T) {
	runner := startReaper(t)
	hang, hangDir := install(t, "hang")
	daemon, daemonDir := install(t, "daemon")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var older sync.WaitGroup
	older.Go(func() { _, _ = runner.Run(ctx, hang, nil) })
	testfn.AwaitRunning(t, hangDir, 1)

	const evaluations = 5 // each makes the Reaper look at what those before have left
	for range evaluations {
		if _, err := runner.Run(t.Context(), daemon, nil); err != nil {
			t.Fatal(err)
		}
	}
	testfn.AwaitRunning(t, daemonDir, evaluations)

	cancel()
	older.Wait()
	testfn.AssertNoneLeft(t, daemonDir)
}

func TestReaperLeavesOthersAlone(t *testing.T) {
	runner := startReaper(t)
	hang, _ := install(t, "hang")
	other := exec.Command(hang.Path)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	daemon, daemonDir := install(t, "daemon")
	for range 2 { // when the second daemon is gone, the look that ended the first is over
		if _, err := runner.Run(t.Context(), daemon, nil); err != nil {
			t.Fatal(err)
		}
		testfn.AssertNoneLeft(t, daemonDir)
	}
	if err := other.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := other.Wait(); err == nil || err.Error() != "signal: terminated" {
		t.Errorf("a child of another part of the program ended with %v, want signal: terminated", err)
	}
}

// TestReaperLeavesStatuses runs many evaluations at once, each of whose ends makes the
// Reaper look: it must take none for an orphan, and leave no orphan unreaped.
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
	awaitNoChildren(t)
}

// awaitNoChildren waits until this process has no children, not even ended ones.
func awaitNoChildren(t *testing.T) {
	t.Helper()
	const options = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT
	var info unix.Siginfo
	for start := time.Now(); unix.Waitid(unix.P_ALL, 0, &info, options, nil) != unix.ECHILD; {
		if time.Since(start) > 10*time.Second {
			t.Fatal("children that have ended were not reaped")
		}
		runtime.Gosched()
	}
}
