// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// startPool returns a Runner with a Reaper that keeps so many spare processes of each program. It is
// maintained until the test ends.
func startPool(t testing.TB, keep int) *fnproc.Runner {
	t.Helper()
	reaper, err := fnproc.NewReaper(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return maintained(t, fnproc.Config{
		Reaper: reaper, Keep: func(string) int { return keep }, Total: keep, Unused: time.Hour, Busy: 100,
	})
}

// maintained returns a Runner that is maintained until the test ends.
func maintained(t testing.TB, cfg fnproc.Config) *fnproc.Runner {
	t.Helper()
	runner := fnproc.NewRunner(cfg)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { runner.Maintain(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return runner
}

// awaitWaiting waits until n processes wait for their evaluations. That they run is not
// enough: one runs for a moment before the Runner has it.
func awaitWaiting(t testing.TB, runner *fnproc.Runner, n int) {
	t.Helper()
	await.Equal(t, "processes that wait for their evaluations", runner.Spares, n)
}

func TestPreforkUsesEachProcessOnce(t *testing.T) {
	cmd, dir := install(t, "echo")
	runner := startPool(t, 2)
	runner.Prepare(cmd)
	for range 5 {
		awaitWaiting(t, runner, 2)
		before := testfn.Running(dir)
		got, err := runner.Run(t.Context(), cmd, []byte(input))
		if err != nil || string(got.Output) != input || got.Prefork != fnproc.PreforkHit {
			t.Fatalf("Run: %v, output %q, prefork %v", err, got.Output, got.Prefork)
		}
		awaitWaiting(t, runner, 2)
		kept := testfn.Running(dir)
		if still := slices.DeleteFunc(before, func(pid int) bool { return !slices.Contains(kept, pid) }); len(still) != 1 {
			t.Fatalf("of two processes %v are left after one evaluation, want one", still)
		}
	}
}

func TestPreforkStartsAfterFirstUse(t *testing.T) {
	cmd, _ := install(t, "echo")
	runner := startPool(t, 1)
	for i, want := range []fnproc.Prefork{fnproc.PreforkMiss, fnproc.PreforkHit} {
		got, err := runner.Run(t.Context(), cmd, []byte(input))
		if err != nil || got.Prefork != want {
			t.Errorf("run %d: %v, prefork %v, want %v", i, err, got.Prefork, want)
		}
		awaitWaiting(t, runner, 1)
	}
	other := cmd
	other.Env = []string{"COLOUR=blue"}
	if got, err := runner.Run(t.Context(), other, []byte(input)); err != nil || got.Prefork != fnproc.PreforkMiss {
		t.Errorf("another environment: %v, prefork %v, want no process of another command", err, got.Prefork)
	}
}

func TestPreforkOff(t *testing.T) {
	cmd, _ := install(t, "echo")
	runner := startPool(t, 0)
	runner.Prepare(cmd)
	if got, err := runner.Run(t.Context(), cmd, []byte(input)); err != nil || got.Prefork != fnproc.PreforkOff {
		t.Errorf("%v, prefork %v, want off", err, got.Prefork)
	}
}

// TestPreforkHandsOutNoDeadProcess kills idle processes right before they are wanted:
// each evaluation has to work all the same.
func TestPreforkHandsOutNoDeadProcess(t *testing.T) {
	cmd, dir := install(t, "echo")
	runner := startPool(t, 8)
	runner.Prepare(cmd)
	awaitWaiting(t, runner, 8)
	var runs sync.WaitGroup
	killed := testfn.Running(dir)
	testfn.Kill(dir)
	await.Equal(t, "a killed process runs", func() bool { // others are started after a backoff
		return slices.ContainsFunc(testfn.Running(dir), func(pid int) bool { return slices.Contains(killed, pid) })
	}, false)
	for range 8 {
		runs.Go(func() {
			got, err := runner.Run(t.Context(), cmd, []byte(input))
			if err != nil || string(got.Output) != input {
				t.Errorf("Run: %v, %s, output %q", err, got.Status, got.Output)
			}
		})
	}
	runs.Wait()
}

// TestPreforkLeaversGetAnotherTry takes a process that ends without reading its input,
// as one would that was about to end when it was taken.
func TestPreforkLeaversGetAnotherTry(t *testing.T) {
	cmd, _ := install(t, "leave=300ms")
	runner := startPool(t, 1)
	runner.Prepare(cmd)
	awaitWaiting(t, runner, 1)
	got, err := runner.Run(t.Context(), cmd, bytes.Repeat([]byte("x"), 1<<20))
	if err != nil || got.ExitCode != 0 || got.Prefork != fnproc.PreforkMiss {
		t.Errorf("%v, %s, prefork %v, want a process of its own in the end", err, got.Status, got.Prefork)
	}
}

func TestPreforkSameOutcomes(t *testing.T) {
	tests := map[string]struct{ reason, function string }{
		"ok":           {"the output is the function's", "echo"},
		"greets":       {"what is written before the input counts", "greet=1000"},
		"talks":        {"one that writes more than an idle one may is not used", "greet=200000"},
		"fails":        {"a failure is one", "exit1"},
		"dies":         {"so is a signal", "signal"},
		"reads not":    {"a function that ends without reading is started for each evaluation", "ignore-stdin"},
		"fails unread": {"whatever its exit code", "exit1-silent"},
		"daemon":       {"what is left behind is not in the way", "daemon"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, _ := install(t, tc.function)
			runner := startPool(t, 2)
			want, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, []byte(input))
			if err != nil {
				t.Fatal(err)
			}
			runner.Prepare(cmd)
			for range 4 {
				got, err := runner.Run(t.Context(), cmd, []byte(input))
				got.Prefork = want.Prefork
				if diff := cmp.Diff(want, got, emptyIsNil); err != nil || diff != "" {
					t.Errorf("%v: %s (-want +got):\n%s", err, tc.reason, diff)
				}
			}
		})
	}
}

// TestTalkingSpareProcessesAreRetired has less of the log kept than a spare process may write: the rest counts.
func TestTalkingSpareProcessesAreRetired(t *testing.T) {
	cmd, dir := install(t, "echo")
	cmd.Env = append(cmd.Env, "TESTFN_GREETING=100000")
	cmd.MaxLog = 6000
	runner := startPool(t, 1)
	runner.Prepare(cmd)
	got, err := runner.Run(t.Context(), cmd, []byte(input))
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("%v, %s", err, got.Status)
	}
	testfn.AwaitRunning(t, dir, 0)
}

func TestPreforkKeepsLimitsAndDeadlines(t *testing.T) {
	hang, _ := install(t, "hang")
	runner := startPool(t, 1)
	runner.Prepare(hang)
	// On a busy machine, a short deadline may pass before the run begins.
	for timeout := 200 * time.Millisecond; ; timeout *= 4 {
		awaitWaiting(t, runner, 1)
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		got, err := runner.Run(ctx, hang, []byte(input))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || timeout > time.Minute {
			t.Fatalf("prefork %v, error %v, want that of the deadline", got.Prefork, err)
		}
		if _, ok := errors.AsType[*fnproc.StoppedError](err); ok && got.Prefork == fnproc.PreforkHit {
			break
		}
	}

	echo, _ := install(t, "echo")
	echo.MaxOutput = 1000
	runner = startPool(t, 1)
	runner.Prepare(echo)
	awaitWaiting(t, runner, 1)
	got, err := runner.Run(t.Context(), echo, bytes.Repeat([]byte("x"), 1001))
	limit, ok := errors.AsType[*fnproc.LimitError](err)
	if !ok || limit.Limit != 1000 || got.Prefork != fnproc.PreforkHit {
		t.Errorf("prefork %v, error %v, want that of the limit", got.Prefork, err)
	}
}

func TestPreforkNoticesAnotherProgram(t *testing.T) {
	cmd, dir := install(t, "echo")
	testfn.Install(t, dir, "new")
	runner := startPool(t, 2)
	runner.Prepare(cmd)
	awaitWaiting(t, runner, 2)
	old := testfn.Running(dir)
	if err := os.Rename(dir+"/new", cmd.Path); err != nil {
		t.Fatal(err)
	}
	got, err := runner.Run(t.Context(), cmd, []byte(input))
	if err != nil || string(got.Output) != input || got.Prefork != fnproc.PreforkMiss {
		t.Errorf("Run: %v, output %q, prefork %v, want the new program", err, got.Output, got.Prefork)
	}
	awaitWaiting(t, runner, 2)
	testfn.AwaitRunning(t, dir, 2)
	for _, pid := range testfn.Running(dir) {
		if slices.Contains(old, pid) {
			t.Errorf("process %d of the old program is kept", pid)
		}
	}
}

// attempts is a log handler's writer that notes when something was logged.
type attempts struct{ at []time.Duration }

func (a *attempts) log(start time.Time) *slog.Logger {
	return slog.New(slog.NewTextHandler(writerFunc(func(line []byte) {
		if strings.Contains(string(line), "spare process ended") {
			a.at = append(a.at, time.Since(start))
		}
	}), nil))
}

type writerFunc func(line []byte)

func (f writerFunc) Write(line []byte) (int, error) { f(line); return len(line), nil }

func TestPreforkBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried attempts
		runner := fnproc.NewRunner(fnproc.Config{
			Keep: func(string) int { return 1 }, Total: 1, Unused: 10 * time.Minute, Log: tried.log(time.Now()),
		})
		runner.Prepare(fnproc.Command{Path: "/no/such/function"})
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		runner.Maintain(ctx)
		var want []time.Duration
		for _, seconds := range []int{0, 1, 3, 7, 15, 31, 63, 127, 255, 511} { // the next one would be after Unused
			want = append(want, time.Duration(seconds)*time.Second)
		}
		if diff := cmp.Diff(want, tried.at); diff != "" {
			t.Errorf("a process that cannot be started is tried at (-want +got):\n%s", diff)
		}
	})
}
