// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

// TestWatchKillsTheLargest has memory run out while a small and a large function run. The
// small one goes on: what the end of the large one frees is enough.
func TestWatchKillsTheLargest(t *testing.T) {
	t.Run("a process", func(t *testing.T) {
		killLargest(t, func(large fnproc.Command) fnproc.Command { return large })
	})
	t.Run("child of a launcher", func(t *testing.T) {
		killLargest(t, func(large fnproc.Command) fnproc.Command {
			large.Args = []string{"-c", large.Path + "; exit $?"}
			large.Path = "/bin/sh"
			large.Launch = &fnproc.Launch{Name: "fn"}
			return large
		})
	})
}

func killLargest(t *testing.T, started func(fnproc.Command) fnproc.Command) {
	t.Helper()
	const limit = 64 << 20
	small, smallDir := install(t, "hang")
	large, largeDir := install(t, fmt.Sprintf("keep=%d", limit))
	look := func() (fnproc.Usage, bool) {
		return fnproc.Usage{Limit: limit, Free: limit - residentSize(smallDir) - residentSize(largeDir)}, true
	}
	runner := fnproc.NewRunner(fnproc.Config{Watch: fnproc.NewWatch(look, nil)})
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

// TestWatchKillsSparesFirst has a spare process use up the container's memory or processes, alone and next to an
// evaluation that uses more than an eighth of the memory.
func TestWatchKillsSparesFirst(t *testing.T) {
	const limit = 64 << 20
	for _, evaluations := range []int{0, 1} {
		t.Run(fmt.Sprintf("memory, %d evaluations", evaluations), func(t *testing.T) {
			keep, greedyDir := install(t, fmt.Sprintf("keep=%d", limit))
			greedy := shell("exec " + keep.Path)
			bystander, dir := install(t, fmt.Sprintf("keep=%d", limit/4))
			usage := func() (fnproc.Usage, bool) {
				return fnproc.Usage{Limit: limit, Free: limit - residentSize(dir) - residentSize(greedyDir)}, true
			}
			killSpare(t, fnproc.NewWatch(usage, nil), greedy, func(ctx context.Context, runner *fnproc.Runner) {
				if evaluations > 0 {
					if got, _ := runner.Run(ctx, bystander, nil); got.OutOfMemory {
						t.Error("the evaluation was killed in place of the spare process")
					}
				}
			}, func() bool { return residentSize(dir) >= int64(evaluations*limit/4) })
		})
	}
	t.Run("processes", func(t *testing.T) {
		usage := func() (fnproc.Usage, bool) {
			return fnproc.Usage{Limit: 64, Free: 32 - processesNamed("bomb-of-spare")}, true
		}
		unknown := func() (fnproc.Usage, bool) { return fnproc.Usage{}, false }
		bomb := shell(`for i in $(seq 500); do sh -c 'sleep 600; :' bomb-of-spare & done; wait`)
		killSpare(t, fnproc.NewWatch(unknown, usage), bomb,
			func(context.Context, *fnproc.Runner) {}, func() bool { return true })
	})
}

// killSpare starts a spare process of the shell script in cmd, while evaluate runs and after ready returns true. The
// script waits until the Watch knows the spare process. killSpare waits until the Watch has killed the process.
func killSpare(
	t *testing.T, watch *fnproc.Watch, cmd fnproc.Command,
	evaluate func(context.Context, *fnproc.Runner), ready func() bool,
) {
	t.Helper()
	known := filepath.Join(t.TempDir(), "known")
	cmd.Args[1] = "until test -e " + known + "; do sleep 0.01; done; " + cmd.Args[1]
	killed := make(chan struct{}, 1)
	runner := maintained(t, fnproc.Config{
		Watch: watch, Total: 1, Unused: time.Hour, Busy: 100,
		Keep: func(function string) int {
			if function == cmd.Path {
				return 1
			}
			return 0
		},
		Log: slog.New(slog.NewTextHandler(writerFunc(func(line []byte) {
			if strings.Contains(string(line), "almost no memory or processes") {
				select {
				case killed <- struct{}{}:
				default:
				}
			}
		}), nil)),
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { evaluate(ctx, runner) })
	await.Equal(t, "the evaluation uses its memory", ready, true)
	runner.Prepare(cmd)
	awaitWaiting(t, runner, 1)
	if err := os.WriteFile(known, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-killed:
	case <-time.After(5 * time.Minute):
		t.Error("the spare process was not killed")
	}
	stop()
	running.Wait()
}

// residentSize returns how many bytes of memory the processes have whose program is in dir.
func residentSize(dir string) (bytes int64) {
	for _, pid := range testfn.Running(dir) {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)) // it may just have ended
		if fields := strings.Fields(string(content)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			bytes += pages * int64(os.Getpagesize())
		}
	}
	return bytes
}

// TestWatchSparesFunctions has a function run where it is not the cause, as far as is known.
func TestWatchSparesFunctions(t *testing.T) {
	tests := map[string]struct {
		memory fnproc.Usage
		known  bool
	}{
		"small function":   {fnproc.Usage{Limit: 1 << 40, Free: -1}, true},
		"enough memory":    {fnproc.Usage{Limit: 1, Free: 1}, true},
		"nothing is known": {fnproc.Usage{Limit: 1, Free: -1}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cmd, _ := install(t, "sleep=100ms")
			look := func() (fnproc.Usage, bool) { return tc.memory, tc.known }
			runner := fnproc.NewRunner(fnproc.Config{Watch: fnproc.NewWatch(look, nil)})
			got, err := runner.Run(t.Context(), cmd, []byte("x"))
			if err != nil || got.OutOfMemory || string(got.Output) != "x" {
				t.Errorf("%+v, %v, want the output", got, err)
			}
		})
	}
}

// TestWatchKillsForkBombs has a function start processes until the container has almost none left, next to one with a
// few processes, which continues.
func TestWatchKillsForkBombs(t *testing.T) {
	const limit = 64
	bystander, _ := install(t, "hang")
	usage := func() (fnproc.Usage, bool) {
		return fnproc.Usage{Limit: limit, Free: limit/2 - processesNamed("bomb-of-test")}, true
	}
	unknown := func() (fnproc.Usage, bool) { return fnproc.Usage{}, false }
	runner := fnproc.NewRunner(fnproc.Config{Watch: fnproc.NewWatch(unknown, usage)})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var running sync.WaitGroup
	running.Go(func() {
		if got, _ := runner.Run(ctx, bystander, nil); got.OutOfProcesses {
			t.Error("the other function was killed too")
		}
	})
	bomb := shell(`for i in $(seq 500); do sh -c 'sleep 600; :' bomb-of-test & done; wait`)
	got, err := runner.Run(t.Context(), bomb, nil)
	if err != nil || !got.OutOfProcesses || got.Signal != syscall.SIGKILL || got.OutOfMemory {
		t.Errorf("the function with many processes: %+v, %v, want that it was killed for them", got, err)
	}
	if left := processesNamed("bomb-of-test"); left > limit {
		t.Errorf("%d processes were started", left)
	}
	stop()
	running.Wait()
}

// shell returns a command that runs a script.
func shell(script string) fnproc.Command {
	return fnproc.Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/bin:/usr/bin"}, MaxOutput: 1000, MaxLog: 1000,
	}
}

// processesNamed returns the number of processes with an argument.
func processesNamed(argument string) (n int64) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		if content, _ := os.ReadFile(line); strings.HasSuffix(string(content), "\x00"+argument+"\x00") {
			n++
		}
	}
	return n
}
