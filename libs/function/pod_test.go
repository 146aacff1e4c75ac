// SPDX-License-Identifier: Apache-2.0

//go:build linux

package function_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
)

// startSharing returns a pod with a shared directory, and the command of a script that finds a directory in $DIR.
func startSharing(t *testing.T, script string) (*function.Pod, fnproc.Command, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "function")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	pod := newService(t, func(cfg *function.ServiceConfig) {
		cfg.Shared = []string{t.TempDir()}
		cfg.Env = append(cfg.Env, "DIR="+dir, "SHARED="+cfg.Shared[0])
	})
	return pod, fnproc.Command{Path: path}, dir
}

// TestInterruptedSecondRunShowsNothing has callers who leave while their evaluation waits to run again with access to
// shared directories. They get the outcome of the first run, and the pod continues to run evaluations concurrently.
func TestInterruptedSecondRunShowsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		fails  bool
	}{
		"exit without a log":       {"cat >/dev/null; exit 3", true},
		"success despite a denial": {"cat; echo permission denied >&2", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod, cmd, dir := startSharing(t, `read -r first
case "$first" in
"# slow") touch "$DIR/started"; while [ ! -e "$DIR/release" ]; do sleep 0.02; done; cat ;;
"# quick") cat ;;
*) `+test.script+` ;;
esac`)
			evaluate := func(ctx context.Context, first string) (function.Result, error) {
				e := evaluation("fn", cmd)
				e.ResourceList = []byte(first + "\n" + list)
				return pod.Evaluate(ctx, e)
			}
			slow := make(chan error)
			go func() { _, err := evaluate(t.Context(), "# slow"); slow <- err }()
			await.Equal(t, "the slow evaluation runs", func() bool {
				_, err := os.Stat(filepath.Join(dir, "started"))
				return err == nil
			}, true)

			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			type outcome struct {
				function.Result
				err error
			}
			left := make(chan outcome)
			go func() { result, err := evaluate(ctx, "# other"); left <- outcome{result, err} }()
			await.Equal(t, "the second run waits until it is alone", pod.Full, true)
			leave()
			got := <-left
			failure, _ := errors.AsType[*function.Failure](got.err)
			switch {
			case test.fails && (failure == nil || failure.Reason != function.Exited || failure.ExitCode != 3):
				t.Errorf("error %v, want the function's own", got.err)
			case !test.fails && (got.err != nil || string(got.ResourceList) != list):
				t.Errorf("%v, got %q, want the list", got.err, got.ResourceList)
			}

			quick, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := evaluate(quick, "# quick"); err != nil {
				t.Errorf("%v, want that an evaluation runs beside the slow one", err)
			}
			if err := os.WriteFile(filepath.Join(dir, "release"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := <-slow; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSecondRunThatFailsIsIgnored has a function that logs a denial but succeeds, and then fails for another reason.
func TestSecondRunThatFailsIsIgnored(t *testing.T) {
	pod, cmd, _ := startSharing(t, `if [ -e "$DIR/ran" ]; then echo broken >&2; exit 1; fi
touch "$DIR/ran"; cat; echo permission denied >&2`)
	if result, err := pod.Evaluate(t.Context(), evaluation("fn", cmd)); err != nil || string(result.ResourceList) != list {
		t.Errorf("%v, got %q, want the list of the first run", err, result.ResourceList)
	}
}

// TestKilledFunctionsRunOnce has a function that is killed, which has nothing to do with shared directories.
func TestKilledFunctionsRunOnce(t *testing.T) {
	pod, cmd, dir := startSharing(t, `echo run >>"$DIR/runs"; cat >/dev/null; kill -9 $$`)
	_, err := pod.Evaluate(t.Context(), evaluation("fn", cmd))
	if failure, ok := errors.AsType[*function.Failure](err); !ok || failure.Reason != function.Signaled {
		t.Errorf("error %v, want a killed function", err)
	}
	if runs, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || strings.Count(string(runs), "run") != 1 {
		t.Errorf("%v, runs: %q, want one", err, runs)
	}
}

// TestKilledSecondRunShowsNothing has a function that needs the shared directory, and is killed there for one input.
// It serves other inputs afterwards.
func TestKilledSecondRunShowsNothing(t *testing.T) {
	pod, cmd, _ := startSharing(t, `read -r first
if [ ! -e "$DIR/denied" ]; then touch "$DIR/denied"; exit 3; fi
rm "$DIR/denied"
if [ "$first" = "# large" ]; then kill -9 $$; fi
cat`)
	e := evaluation("fn", cmd)
	e.ResourceList = []byte("# large\n" + list)
	_, err := pod.Evaluate(t.Context(), e)
	if failure, ok := errors.AsType[*function.Failure](err); !ok || failure.ExitCode != 3 {
		t.Errorf("error %v, want the failure of the first run", err)
	}
	e.ResourceList = []byte("# small\n" + list)
	if result, err := pod.Evaluate(t.Context(), e); err != nil || string(result.ResourceList) != list {
		t.Errorf("%v, got %q, want the list", err, result.ResourceList)
	}
}

// TestNoProcessKeepsAccessToSharedDirectories has an evaluation that runs alone leave a process in another session,
// which writes to the shared directory all the time. It must be gone before another evaluation can begin.
func TestNoProcessKeepsAccessToSharedDirectories(t *testing.T) {
	pod, cmd, dir := startSharing(t, `cat
if [ ! -e "$DIR/denied" ]; then touch "$DIR/denied"; echo permission denied >&2; exit 1; fi
setsid sh -c 'echo $$ >"$DIR/pid"; while :; do echo x >"$SHARED/planted"; done' </dev/null >/dev/null 2>&1 &
while [ ! -s "$DIR/pid" ] || [ ! -e "$SHARED/planted" ]; do sleep 0.02; done`)
	ctx, cancel := context.WithCancel(context.Background())
	var maintained sync.WaitGroup
	maintained.Go(func() { _ = pod.Maintain(ctx) })
	defer maintained.Wait()
	defer cancel()
	for range 2 { // the second evaluation runs alone from the start
		if _, err := pod.Evaluate(t.Context(), evaluation("fn", cmd)); err != nil {
			t.Fatal(err)
		}
		written, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(written)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%v, want that the process that the evaluation left behind no longer exists", err)
		}
		if err := os.Remove(filepath.Join(dir, "pid")); err != nil {
			t.Fatal(err)
		}
	}
}
