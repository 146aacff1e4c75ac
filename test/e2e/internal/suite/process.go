// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Process is a process in a pod. Its ID belongs to the PID namespace of the cluster, in which the tests also run.
type Process struct {
	PID     int
	Program string // the first word of its command line
	parent  int
}

// Processes returns the processes in a pod.
func Processes(t testing.TB, pod *corev1.Pod) []Process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// Ignore errors, because the process may have exited in the meantime.
		group, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		if !strings.Contains(string(group), "/pod"+string(pod.UID)+"/") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if program, _, _ := bytes.Cut(line, []byte{0}); len(program) > 0 {
			found = append(found, Process{PID: pid, parent: parentOf(entry.Name()), Program: string(program)})
		}
	}
	return found
}

// parentOf returns the ID of a process's parent, or 0 if the process has exited.
func parentOf(pid string) int {
	// Parse the fields after the last parenthesis, because the name in parentheses may contain any characters.
	line, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	number, _ := strconv.Atoi(fields[1])
	return number
}

// CountProcesses counts the processes in a pod that run a program.
func CountProcesses(t testing.TB, pod *corev1.Pod, program string) int {
	t.Helper()
	n := 0
	for _, p := range Processes(t, pod) {
		if p.Program == program {
			n++
		}
	}
	return n
}

// FindProcess returns the only process in a pod that runs a program. It ignores children of this process. Until a new
// child executes another program, it has its parent's command line and looks like a second process of the program.
func FindProcess(t testing.TB, pod *corev1.Pod, program string) Process {
	t.Helper()
	var found []Process
	for _, p := range Processes(t, pod) {
		if p.Program == program {
			found = append(found, p)
		}
	}
	all := slices.Clone(found)
	found = slices.DeleteFunc(found, func(p Process) bool {
		return slices.ContainsFunc(all, func(other Process) bool { return p.parent == other.PID })
	})
	if len(found) != 1 {
		t.Fatalf("pod %s has %d processes of %s, want one: %v", pod.Name, len(found), program, Processes(t, pod))
	}
	return found[0]
}

// Kill kills a process by its ID. The ID cannot belong to another process before the parent process has reaped this
// process, because the kernel does not reuse the ID earlier.
func Kill(t testing.TB, p Process) {
	t.Helper()
	if err := unix.Kill(p.PID, unix.SIGKILL); err != nil {
		t.Fatalf("kill %s: %v", p.Program, err)
	}
}

// WrapperServer returns the path of the wrapper-server in a function pod.
func WrapperServer(pod *corev1.Pod) string { return pod.Spec.Containers[0].Command[0] }

// ProgramOf returns the path of the program in one of the system's own pods, such as a gateway's pod.
func ProgramOf(pod *corev1.Pod) string { return "/ko-app/" + pod.Labels["app"] }
