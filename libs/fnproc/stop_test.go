// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

func TestRunLimits(t *testing.T) {
	tests := map[string]struct {
		reason, function  string
		maxOutput, maxLog int64
		streams           []string // one of them is blamed
	}{
		"output":     {"a flood of output ends the function", "flood-stdout", 1 << 20, 1 << 20, []string{"output"}},
		"both":       {"also beside a flood of log", "flood-both", 1 << 20, 1 << 20, []string{"output"}},
		"by a byte":  {"one byte too much is too much", "flood-stdout=6001", 6000, 0, []string{"output"}},
		"none":       {"zero allows nothing", "flood-stdout=1", 0, 0, []string{"output"}},
		"afterwards": {"a limit holds for what is read after the end too", "flood-stdout=6001", 1000, 0, []string{"output"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, _ := install(t, tc.function)
			cmd.MaxOutput, cmd.MaxLog = tc.maxOutput, tc.maxLog
			got, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, nil)
			limit, ok := errors.AsType[*fnproc.LimitError](err)
			if !ok || fault.Of(err) != fault.Exhausted {
				t.Fatalf("error %v of class %v: %s", err, fault.Of(err), tc.reason)
			}
			kept := map[string]int64{"output": int64(len(got.Output)), "log": int64(len(got.Log))}
			allowed := map[string]int64{"output": tc.maxOutput, "log": tc.maxLog}
			for _, stream := range tc.streams {
				if limit.Stream == stream && limit.Limit == allowed[stream] && kept[stream] == allowed[stream] {
					return
				}
			}
			t.Errorf("%v, kept %v: %s", limit, kept, tc.reason)
		})
	}
}

func TestRunStops(t *testing.T) {
	errShutdown := errors.New("shutting down")
	tests := map[string]struct {
		reason, function string
		processes        int
		log              string
	}{
		"hangs":            {"a function that hangs is killed", "hang", 1, ""},
		"ignores SIGTERM":  {"and cannot refuse", "ignore-sigterm", 1, ""},
		"leaves its group": {"nor hide from the signal", "leave-group", 2, "cannot leave: operation not permitted\n"},
		"has a child":      {"its children are killed with it; the log is kept", "hang-with-child", 2, "about to hang\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, dir := install(t, tc.function)
			ctx, cancel := context.WithCancelCause(t.Context())
			var canceller sync.WaitGroup
			defer canceller.Wait()
			canceller.Go(func() {
				testfn.AwaitRunning(t, dir, tc.processes)
				cancel(errShutdown)
			})
			got, err := fnproc.NewRunner(fnproc.Config{}).Run(ctx, cmd, bytes.Repeat([]byte("x"), 10<<20))
			if _, ok := errors.AsType[*fnproc.StoppedError](err); !ok {
				t.Fatalf("error %v is no StoppedError: %s", err, tc.reason)
			}
			if !errors.Is(err, errShutdown) || !errors.Is(err, context.Canceled) {
				t.Errorf("error %v has not the context's error and cause", err)
			}
			if string(got.Log) != tc.log {
				t.Errorf("log %q, want %q: %s", got.Log, tc.log, tc.reason)
			}
		})
	}
}

func TestRunDeadContext(t *testing.T) {
	cmd, _ := install(t, "echo")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fnproc.NewRunner(fnproc.Config{}).Run(ctx, cmd, nil); fault.Of(err) != fault.Canceled {
		t.Errorf("error %v of class %v", err, fault.Of(err))
	}
}

// TestRunConcurrently ends a hundred functions at random times: before, while and
// after they run.
func TestRunConcurrently(t *testing.T) {
	cmd, _ := install(t, "sleep=10ms")
	var runs sync.WaitGroup
	for range 100 {
		runs.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(300*time.Millisecond))
			defer cancel()
			got, err := fnproc.NewRunner(fnproc.Config{}).Run(ctx, cmd, []byte(input))
			switch {
			case err == nil && string(got.Output) != input:
				t.Errorf("%s with output %q", got.Status, got.Output)
			case err != nil && fault.Of(err) != fault.DeadlineExceeded:
				t.Errorf("error %v", err)
			}
		})
	}
	runs.Wait()
}

// TestLongLogsAreCut has functions log more than is kept. They go on, and both ends of the log are there.
func TestLongLogsAreCut(t *testing.T) {
	for _, size := range []int{6000, 6001, 100_000, 2 << 20} {
		cmd, _ := install(t, "greet="+strconv.Itoa(size))
		cmd.MaxLog = 6000
		got, err := fnproc.NewRunner(fnproc.Config{}).Run(t.Context(), cmd, []byte("input"))
		if err != nil || got.ExitCode != 0 || string(got.Output) != "input" {
			t.Fatalf("with a log of %d bytes, the function ends with %v, %s, output %q", size, err, got.Status, got.Output)
		}
		whole := strings.Repeat("water ", size/6+1)[:size]
		want := whole
		if left := size - 6000; left > 0 {
			want = whole[:3000] + fmt.Sprintf("\n[%d bytes of the log left out]\n", left) + whole[size-3000:]
		}
		if string(got.Log) != want {
			end := got.Log[max(0, len(got.Log)-40):]
			t.Errorf("of a log of %d bytes, %d are kept: %.40q… …%.40q", size, len(got.Log), got.Log, end)
		}
	}
}
