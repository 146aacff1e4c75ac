// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fnproc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// childrenOf returns children of pid, read from proc, the file system at /proc. The result
// has at least the adopted children: the kernel gives an orphan to the first thread of its
// new parent, so the list of that thread is enough.
func childrenOf(proc fs.FS, pid int) ([]int, error) {
	list, err := fs.ReadFile(proc, fmt.Sprintf("%d/task/%d/children", pid, pid))
	if errors.Is(err, fs.ErrNotExist) {
		return childrenByScan(proc, pid) // a kernel without CONFIG_PROC_CHILDREN
	}
	if err != nil {
		return nil, fmt.Errorf("list children: %w", err)
	}
	var pids []int
	for _, field := range bytes.Fields(list) {
		child, err := strconv.Atoi(string(field))
		if err != nil {
			return nil, fmt.Errorf("list children: %w", err)
		}
		pids = append(pids, child)
	}
	return pids, nil
}

// childrenByScan returns the children of pid by asking every process for its parent.
func childrenByScan(proc fs.FS, pid int) ([]int, error) {
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // no process
		}
		// An error is a process that has ended.
		if stat, err := fs.ReadFile(proc, entry.Name()+"/stat"); err == nil && parent(stat) == pid {
			pids = append(pids, child)
		}
	}
	return pids, nil
}

// isEnding reports whether a process, by the contents of its stat file, was killed or ends by itself: what is
// left of it takes the kernel a moment.
func isEnding(stat []byte) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const flagsField, pendingField = 6, 28
	if len(fields) <= pendingField {
		return false
	}
	flags, _ := strconv.ParseUint(string(fields[flagsField]), 10, 64)
	pending, _ := strconv.ParseUint(string(fields[pendingField]), 10, 64)
	const exiting, killed = 0x4, 1 << (unix.SIGKILL - 1) // the first is PF_EXITING
	return flags&exiting != 0 || pending&killed != 0
}

// parent returns the parent's pid in the contents of a stat file, or 0. The field
// before it is the state; the one before that is the program's name in parentheses,
// which may contain anything.
func parent(stat []byte) int {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	pid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return pid
}
