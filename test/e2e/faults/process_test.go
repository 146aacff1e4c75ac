// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

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

// process is a process in a pod, by its number in the cluster's namespaces, in which these tests
// run.
type process struct {
	pid     int
	parent  int
	program string // the first word of its command line
}

// processes returns the processes in a pod.
func processes(t testing.TB, pod *corev1.Pod) []process {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process that cannot be read has ended.
		group, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		if !strings.Contains(string(group), "/pod"+string(pod.UID)+"/") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if program, _, _ := bytes.Cut(line, []byte{0}); len(program) > 0 {
			found = append(found, process{pid: pid, parent: parent(entry.Name()), program: string(program)})
		}
	}
	return found
}

// parent returns the number of a process's parent; 0 if the process has ended.
func parent(pid string) int {
	// The program's name, in parentheses, may contain anything.
	line, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	number, _ := strconv.Atoi(fields[1])
	return number
}

// count counts a pod's processes of a program.
func count(t testing.TB, pod *corev1.Pod, program string) int {
	t.Helper()
	n := 0
	for _, p := range processes(t, pod) {
		if p.program == program {
			n++
		}
	}
	return n
}

// find returns the one process of a program in a pod. (A process just before it executes another
// program looks like a second one.)
func find(t testing.TB, pod *corev1.Pod, program string) process {
	t.Helper()
	var found []process
	for _, p := range processes(t, pod) {
		if p.program == program {
			found = append(found, p)
		}
	}
	all := slices.Clone(found)
	found = slices.DeleteFunc(found, func(p process) bool {
		return slices.ContainsFunc(all, func(other process) bool { return p.parent == other.pid })
	})
	if len(found) != 1 {
		t.Fatalf("pod %s has %d processes of %s, want one: %v", pod.Name, len(found), program, processes(t, pod))
	}
	return found[0]
}

// kill kills a process, whose number is not reused: its parent has not waited for it before.
func kill(t testing.TB, p process) {
	t.Helper()
	if err := unix.Kill(p.pid, unix.SIGKILL); err != nil {
		t.Fatalf("kill %s: %v", p.program, err)
	}
}

// functionProgram is the command line of functions.
const functionProgram = "/usr/local/bin/function"

// wrapperServer is the command line of a function pod's wrapper server, at one path or another.
func wrapperServer(pod *corev1.Pod) string { return pod.Spec.Containers[0].Command[0] }

// program is the command line of one of the system's own programs, by its pod.
func program(pod *corev1.Pod) string { return "/ko-app/" + pod.Labels[appLabel] }
