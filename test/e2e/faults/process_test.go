//go:build e2e

package faults_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// process is a process in a pod, by its number in the cluster's namespaces, in which
// these tests run.
type process struct {
	pid     int
	program string // the first word of its command line
}

// processes are those that run in a pod.
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
		// What cannot be read has ended.
		group, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cgroup"))
		if !strings.Contains(string(group), "/pod"+string(pod.UID)+"/") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if program, _, _ := bytes.Cut(line, []byte{0}); len(program) > 0 {
			found = append(found, process{pid: pid, program: string(program)})
		}
	}
	return found
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

// find finds the one process of a program in a pod.
func find(t testing.TB, pod *corev1.Pod, program string) process {
	t.Helper()
	var found []process
	for _, p := range processes(t, pod) {
		if p.program == program {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		t.Fatalf("pod %s has %d processes of %s, want one: %v", pod.Name, len(found), program, processes(t, pod))
	}
	return found[0]
}

// kill kills a process, whose number is its own: nobody has waited for it before.
func kill(t testing.TB, p process) {
	t.Helper()
	if err := unix.Kill(p.pid, unix.SIGKILL); err != nil {
		t.Fatalf("killing %s: %v", p.program, err)
	}
}

// Programs by their command lines.
const (
	wrapperServer   = "/wrapper-server-tools/wrapper-server"
	functionProgram = "/usr/local/bin/function"
)

// program is the command line of one of the system's own programs.
func program(name string) string { return "/ko-app/" + name }
