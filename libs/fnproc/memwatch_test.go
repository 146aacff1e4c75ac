// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// TestMemoryWatchKillsTheLargest has memory run out while a small and a large function run. The
// small one goes on: what the end of the large one frees is enough.
func TestMemoryWatchKillsTheLargest(t *testing.T) {
	t.Run("a process", func(t *testing.T) {
		killLargest(t, func(large fnproc.Command) fnproc.Command { return large })
	})
	t.Run("child of a launcher", func(t *testing.T) {
		killLargest(t, func(large fnproc.Command) fnproc.Command {
			large.Args = []string{"-c", large.Path + "; exit $?"}
			large.Path, large.Launch = "/bin/sh", &fnproc.Launch{Name: "fn"}
			return large
		})
	})
}

func killLargest(t *testing.T, started func(fnproc.Command) fnproc.Command) {
	t.Helper()
	const limit = 64 << 20
	small, smallDir := install(t, "hang")
	large, largeDir := install(t, fmt.Sprintf("keep=%d", limit))
	look := func() (fnproc.Memory, bool) {
		return fnproc.Memory{Limit: limit, Free: limit - resident(smallDir) - resident(largeDir)}, true
	}
	runner := fnproc.Runner{Memory: fnproc.NewMemoryWatch(look, nil)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		got, _ := runner.Run(ctx, small, nil)
		if got.OutOfMemory {
			t.Error("the small function was killed too")
		}
	})
	testfn.AwaitRunning(t, smallDir, 1)
	got, err := runner.Run(t.Context(), started(large), nil)
	if err != nil || !got.OutOfMemory || got.Signal != syscall.SIGKILL || got.Status != "signal: killed" {
		t.Errorf("the large function: %+v, %v, want that it was killed for memory", got, err)
	}
	testfn.AwaitRunning(t, smallDir, 1)
	stop()
	running.Wait()
}

// resident returns how many bytes of memory the processes have whose program is in dir.
func resident(dir string) (bytes int64) {
	for _, pid := range testfn.Running(dir) {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)) // it may just have ended
		if fields := strings.Fields(string(content)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			bytes += pages * int64(os.Getpagesize())
		}
	}
	return bytes
}

// TestMemoryWatchSparesFunctions has a function run where it is not the cause, as far as is known.
func TestMemoryWatchSparesFunctions(t *testing.T) {
	tests := map[string]struct {
		memory fnproc.Memory
		known  bool
	}{
		"small function":   {fnproc.Memory{Limit: 1 << 40, Free: -1}, true},
		"enough memory":    {fnproc.Memory{Limit: 1, Free: 1}, true},
		"nothing is known": {fnproc.Memory{Limit: 1, Free: -1}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, _ := install(t, "sleep=100ms")
			look := func() (fnproc.Memory, bool) { return tc.memory, tc.known }
			runner := fnproc.Runner{Memory: fnproc.NewMemoryWatch(look, nil)}
			got, err := runner.Run(t.Context(), cmd, []byte("x"))
			if err != nil || got.OutOfMemory || string(got.Output) != "x" {
				t.Errorf("%+v, %v, want the output", got, err)
			}
		})
	}
}

// TestSpareProcessesOfPeaksEndBeforeFunctions has memory run out while spare processes have it that only a peak has
// kept. They end, and do not come back, and no function is killed.
func TestSpareProcessesOfPeaksEndBeforeFunctions(t *testing.T) {
	cmd, dir := install(t, "sleep=100ms")
	large, _ := install(t, "sleep=200ms")
	var short atomic.Bool
	pool := fnproc.NewPreforkPool(fnproc.PreforkConfig{
		Keep:  func(function string) int { return map[string]int{cmd.Path: 1}[function] },
		Total: 100, Unused: time.Hour, Busy: 100, Spacious: func() bool { return !short.Load() },
	})
	look := func() (fnproc.Memory, bool) {
		memory := fnproc.Memory{Limit: 1, Free: 1}
		if short.Load() && len(testfn.Running(dir)) > 1 {
			memory.Free = -1
		}
		return memory, true
	}
	runner := maintained(t, fnproc.Runner{Prefork: pool, Memory: fnproc.NewMemoryWatch(look, pool)})
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() { _, _ = runner.Run(t.Context(), cmd, []byte(input)) })
	}
	running.Wait()
	awaitWaiting(t, runner, 4)
	short.Store(true)
	if got, err := runner.Run(t.Context(), large, []byte(input)); err != nil || got.OutOfMemory {
		t.Errorf("%+v, %v, want that no function is killed", got, err)
	}
	if n := pool.Waiting(); n != 1 {
		t.Errorf("%d spare processes, want 1", n)
	}
}
