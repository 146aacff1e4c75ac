// SPDX-License-Identifier: Apache-2.0

// Package testfn installs the program testfn, a KRM function for tests whose file name selects its behaviour. The
// documentation of the command testfn lists the behaviours. The package also finds running processes of the program.
package testfn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// program is the import path of the command testfn, the KRM function for tests.
const program = "github.com/krm-function-runner/function-runner/libs/testing/testfn/cmd/testfn"

// Install installs the program testfn in dir under each of the names. The name selects the program's behaviour, such
// as "echo" or "sleep=50ms", unless the program gets a behaviour as an argument. The directory must exist, and only
// this test may use it. The test fails if an installed program still runs when the test ends.
func Install(t testing.TB, dir string, names ...string) {
	t.Helper()
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := writeProgram(filepath.Join(dir, name), binary); err != nil {
			t.Fatalf("install test function: %v", err)
		}
	}
	t.Cleanup(func() { AssertNoneLeft(t, dir) })
}

// Built is the environment variable with the path of a compiled testfn. It is for tests that run as a user who cannot
// compile the program.
const Built = "TESTFN_BUILT"

// build compiles testfn once per test process, as a static binary. We keep the binary in memory instead of in a file,
// because no test would delete the file.
var build = sync.OnceValues(func() ([]byte, error) {
	if path := os.Getenv(Built); path != "" {
		return os.ReadFile(path)
	}
	dir, err := os.MkdirTemp("", "testfn")
	if err != nil {
		return nil, fmt.Errorf("build test function: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "testfn")
	if err := gobuild.To(path, "", program); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// writeProgram writes an executable file while no process of this program can start. Otherwise a new process could
// inherit the file while it is open for writing. The kernel would then refuse to execute the file ("text file busy").
func writeProgram(path string, content []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, content, 0o700)
}

// waitTimeout limits the wait until processes have started or exited. pause is the interval between checks.
const (
	waitTimeout = 5 * time.Minute
	pause       = 5 * time.Millisecond
)

// Running returns the ids of the running processes whose binary is in dir. It omits zombies.
func Running(dir string) []int {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // not a process
		}
		exe, err := os.Readlink(filepath.Join("/proc", entry.Name(), "exe"))
		if err == nil && strings.HasPrefix(exe, filepath.Clean(dir)+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// runningPrograms is like Running, but omits forked processes that have not executed a program yet. Before a Go program
// starts its first child, Go's runtime briefly forks such a process to test pidfds.
func runningPrograms(dir string) []int {
	return slices.DeleteFunc(Running(dir), func(pid int) bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, fields, ok := strings.Cut(string(stat), ") ") // fields after the program's name: state, five numbers, flags
		if err != nil || !ok {
			return true // the process has exited
		}
		flags, _ := strconv.ParseUint(strings.Fields(fields)[6], 10, 64)
		const forkedWithoutExec = 0x40 // PF_FORKNOEXEC of the kernel
		return flags&forkedWithoutExec != 0
	})
}

// Abandoned returns the processes with a binary in dir that evaluations left behind. It omits the processes that a
// server started in advance for later evaluations, and the children of these processes. Abandoned recognizes the
// omitted processes by their standard input. It is a pipe whose other end is open in this process.
func Abandoned(dir string) []int {
	held := map[string]bool{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if file, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil {
			held[file] = true
		}
	}
	return slices.DeleteFunc(Running(dir), func(pid int) bool {
		input, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
		return err != nil || held[input] // the process has exited, or waits for its input
	})
}

// AwaitRunning waits until exactly n processes with a binary in dir run. It fails the test after a timeout.
func AwaitRunning(t testing.TB, dir string, n int) {
	t.Helper()
	if pids := awaitCount(runningPrograms, dir, n); len(pids) != n {
		t.Fatalf("%d processes from %s run, not %d: %s", len(pids), dir, n, describeProcesses(pids))
	}
}

// AssertNoneLeft waits until no program in dir runs. After a timeout, it fails the test and kills the remaining
// processes.
func AssertNoneLeft(t testing.TB, dir string) {
	t.Helper()
	if pids := awaitCount(Running, dir, 0); len(pids) > 0 {
		t.Errorf("processes are left: %s", describeProcesses(pids))
		Kill(dir)
	}
}

// AssertNoneAbandoned waits until evaluations have left no processes with a binary in dir. After a timeout, it fails
// the test. Unlike [AssertNoneLeft], it permits processes that a server keeps for later evaluations.
func AssertNoneAbandoned(t testing.TB, dir string) {
	t.Helper()
	if pids := awaitCount(Abandoned, dir, 0); len(pids) > 0 {
		t.Errorf("processes are left while the server runs: %s", describeProcesses(pids))
	}
}

// Kill kills the processes whose binary is in dir. It is for tests that leave processes on purpose.
func Kill(dir string) {
	for _, pid := range Running(dir) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// awaitCount calls find until find returns n processes or waitTimeout has passed. It returns the last result of find.
func awaitCount(find func(dir string) []int, dir string, n int) []int {
	pids := find(dir)
	for start := time.Now(); len(pids) != n && time.Since(start) < waitTimeout; pids = find(dir) {
		time.Sleep(pause)
	}
	return pids
}

// describeProcesses returns the ids and the command lines of processes, for error messages.
func describeProcesses(pids []int) string {
	texts := make([]string, len(pids))
	for i, pid := range pids {
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		texts[i] = fmt.Sprintf("%d (%s)", pid, strings.TrimRight(strings.ReplaceAll(string(args), "\x00", " "), " "))
	}
	return strings.Join(texts, ", ")
}
