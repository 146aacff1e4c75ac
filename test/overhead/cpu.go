// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// clockTick is the unit of processor times in /proc, which is the same on all Linux systems (USER_HZ is 100).
const clockTick = 10 * time.Millisecond

// processorTime returns the processor time of this program and of a server, including their exited children. pid is the
// server's process ID, or 0 without a server. On a busy machine, processor time is more reliable than wall-clock time.
func processorTime(pid int) (time.Duration, error) {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			return 0, fmt.Errorf("read the processor time: %w", err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	if pid == 0 {
		return total, nil
	}
	theirs, err := readTicks(pid)
	return total + time.Duration(theirs)*clockTick, err
}

// readTicks returns the processor time of a process and its exited children, in units of clockTick.
func readTicks(pid int) (int64, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the server's processor time: %w", err)
	}
	// Sum fields 14 to 17 of proc(5). Parse after the last parenthesis, because the name may contain any character.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var total int64
	for _, field := range fields[11:15] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", path, err)
		}
		total += n
	}
	return total, nil
}
