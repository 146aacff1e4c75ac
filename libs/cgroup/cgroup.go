// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads a container's memory limit, its processes and its out-of-memory kills from the container's
// control group. It supports versions 1 and 2 of control groups.
package cgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Container is the path where a container finds its own control group.
const Container = "/sys/fs/cgroup"

// limits lists the files that contain a container's memory limit: first for cgroup version 2, then for version 1.
var limits = []string{"memory.max", "memory/memory.limit_in_bytes"}

// unlimited is the smallest value that counts as no limit. If there is no limit, the kernel shows a larger number in
// version 1 of control groups.
const unlimited = 1 << 60

// MemoryLimit returns the memory limit of a container in bytes. Root is the directory of the container's control
// group. MemoryLimit returns false if no limit is known. The limit may change while the container runs.
func MemoryLimit(root string) (limit int64, ok bool) {
	for _, name := range limits {
		if limit, ok = readNumber(filepath.Join(root, name)); ok {
			return limit, limit > 0 && limit < unlimited
		}
	}
	return 0, false
}

// MachineMemory returns the machine's total memory and the memory that programs can still use, in bytes. It reads a
// file in the format of /proc/meminfo, and returns false if the file does not contain both numbers.
func MachineMemory(file string) (total, available int64, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, false
	}
	values := readNumbers([]byte(strings.NewReplacer(":", "", " kB", "").Replace(string(content))))
	total, available = values["MemTotal"]<<10, values["MemAvailable"]<<10
	return total, available, total > 0 && available > 0
}

// uses lists the files that contain a container's memory use: first for cgroup version 2, then for version 1. The file
// used contains the total in bytes. The file details contains further numbers, each with a name. The fields inactive,
// active and mapped contain the names of the numbers for cached files.
var uses = []struct{ used, details, inactive, active, mapped string }{
	{"memory.current", "memory.stat", "inactive_file", "active_file", "file_mapped"},
	{
		"memory/memory.usage_in_bytes", "memory/memory.stat",
		"total_inactive_file", "total_active_file", "total_mapped_file",
	},
}

// MemoryUse returns the memory that a container uses, in bytes. Root is the directory of the container's control
// group. Cached files do not count, because the kernel drops them when it needs memory. Mapped files, such as
// running programs, do count. MemoryUse returns false if the used memory is unknown.
func MemoryUse(root string) (used int64, ok bool) {
	for _, names := range uses {
		used, ok := readNumber(filepath.Join(root, names.used))
		if !ok {
			continue
		}
		details, err := os.ReadFile(filepath.Join(root, names.details))
		if err != nil {
			return 0, false
		}
		values := readNumbers(details)
		files := values[names.inactive] + values[names.active]
		return used - files + min(values[names.mapped], files), true
	}
	return 0, false
}

// readNumbers parses a file of a control group whose lines contain a name and a number.
func readNumbers(content []byte) map[string]int64 {
	values := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), " "); found {
			values[name], _ = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return values
}

// usualProcesses is the assumed maximum number of processes if the container has no limit of its own. A limit of the
// pod or the node then applies, but a container cannot read that limit.
const usualProcesses = 4096

// Processes returns the maximum and the current number of processes and threads in the control group at root. It
// returns false if there is no such group.
func Processes(root string) (limit, used int64, ok bool) {
	for _, dir := range []string{root, filepath.Join(root, "pids")} {
		if used, ok = readNumber(filepath.Join(dir, "pids.current")); ok {
			if limit, ok = readNumber(filepath.Join(dir, "pids.max")); !ok {
				limit = usualProcesses
			}
			return limit, used, true
		}
	}
	return 0, 0, false
}

func readNumber(file string) (number int64, ok bool) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	number, err = strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	return number, err == nil
}

// Kills detects whether the kernel killed a process because the container ran out of memory. It compares the kernel's
// count of such kills with the number of kills that Explain has already reported. For a nil Kills and for the zero
// value, Explain always returns an empty string. Kills is safe for concurrent use.
type Kills struct {
	root, counter string // directory of the control group, and its file that counts kills

	mu        sync.Mutex
	explained int64 // kills before the start, or already returned by Explain
}

// counters contains the names of the files where the kernel counts processes killed for lack of memory, in
// version 2 and version 1 of control groups.
var counters = []string{"memory.events", "memory/memory.oom_control"}

// NewKills returns a detector for the control group at root, such as [Container].
func NewKills(root string) *Kills {
	for _, counter := range counters {
		k := &Kills{root: root, counter: filepath.Join(root, counter)}
		if kills, ok := k.countKills(); ok {
			k.explained = kills
			return k
		}
	}
	return &Kills{}
}

// Explain returns the cause and the remedy if the kernel killed a process because memory ran out. Otherwise it returns
// an empty string. Callers must call Explain once for each process that died of a SIGKILL, unless they sent the SIGKILL
// themselves. This is because each kill by the kernel explains only the death of one process.
func (k *Kills) Explain() string {
	if k == nil || k.counter == "" {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	kills, ok := k.countKills()
	if !ok || kills <= k.explained {
		return ""
	}
	k.explained++
	return k.Text()
}

// Text returns the message for a function that ran out of memory: the cause and the remedy.
func (k *Kills) Text() string {
	if k != nil {
		if limit, ok := MemoryLimit(k.root); ok {
			return fmt.Sprintf(
				"out of memory: its container may use %d MiB: raise that limit, or make the package smaller", limit>>20)
		}
	}
	return "out of memory: give the function a larger memory limit, or make the package smaller"
}

// countKills reads the number of processes that the kernel has killed in this control group because memory ran
// out. It returns false if the number is unknown.
func (k *Kills) countKills() (kills int64, ok bool) {
	content, err := os.ReadFile(k.counter)
	kills, ok = readNumbers(content)["oom_kill"]
	return kills, ok && err == nil
}
