// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is a function's process that the attacked program has started.
type Process struct {
	Pid  int
	Name string // argument 0, which is the process's role
}

// Processes returns the processes of all functions, including processes that were started in advance.
func (p *Program) Processes() []Process {
	functions := filepath.Join(p.dir, "functions") + "/"
	var all []Process
	for pid := range listProcesses() {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err != nil || !strings.HasPrefix(exe, functions) {
			continue
		}
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		name, _, _ := bytes.Cut(args, []byte{0})
		all = append(all, Process{Pid: pid, Name: string(name)})
	}
	return all
}

// Zombies returns the number of the program's children that have exited but were not reaped.
func (p *Program) Zombies() int {
	n := 0
	for pid := range listProcesses() {
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		// Parse the fields after the last parenthesis, because the name in parentheses may contain spaces.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(p.Pid) {
			n++
		}
	}
	return n
}

func listProcesses() func(yield func(int) bool) {
	entries, _ := os.ReadDir("/proc")
	return func(yield func(int) bool) {
		for _, entry := range entries {
			if pid, err := strconv.Atoi(entry.Name()); err == nil && !yield(pid) {
				return
			}
		}
	}
}

// residentMemory returns the size of a process's resident set in bytes.
func residentMemory(pid int) int64 {
	content, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if fields := strings.Fields(string(content)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
