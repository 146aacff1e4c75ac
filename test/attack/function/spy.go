// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// secret is a text in other callers' resource lists. Hostile functions search the memory of processes for it.
const secret = "secret-of-another-caller"

// injected is a text that the spy process adds to the output of another caller's evaluation.
const injected = "# added by another function\n"

// spy is the task of a helper process that outlives its evaluation. It searches for the processes of later evaluations
// and writes into their outputs. It exits after lifetime.
func spy() {
	signal.Ignore(syscall.SIGTERM)
	for end := time.Now().Add(lifetime); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, pid := range otherProcesses() {
			if !memoryHolds(pid, []byte(secret)) {
				continue
			}
			if out, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/1", pid), os.O_WRONLY, 0); err == nil {
				_, _ = out.WriteString(injected)
				_ = out.Close()
			}
		}
	}
}

// stealSecret searches the memory of all other processes for a text, the argument. It repeats the search for a second.
func stealSecret(arg string) {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, pid := range otherProcesses() {
			if memoryHolds(pid, []byte(arg)) {
				reportBreach("read another caller's package in the memory of process %d", pid)
				return
			}
		}
	}
}

func otherProcesses() []int {
	var pids []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// memoryHolds reports whether a process's memory is readable and contains text.
func memoryHolds(pid int, text []byte) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil {
		return false
	}
	memory, err := os.Open(filepath.Join(dir, "mem"))
	if err != nil {
		return false
	}
	defer func() { _ = memory.Close() }()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		if n, _ := fmt.Sscanf(line, "%x-%x rw", &from, &to); n != 2 || to-from > 64<<20 {
			continue
		}
		content := make([]byte, to-from)
		n, _ := memory.ReadAt(content, from)
		if bytes.Contains(content[:n], text) {
			return true
		}
	}
	return false
}
