// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Remove kills the processes in the named control group, and removes this group and all groups below it. It waits until
// deadline for the killed processes to exit.
func Remove(name string, deadline time.Time) error {
	roots, err := listHierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := removeTree(filepath.Join(root, name), deadline); err != nil {
			return fmt.Errorf("remove control group %s in %s: %w", name, root, err)
		}
	}
	return nil
}

// removeTree removes dir and all groups below it, children first. It does not delete the files in a group's directory,
// because the kernel removes them together with the directory.
func removeTree(dir string, deadline time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := removeTree(filepath.Join(dir, entry.Name()), deadline); err != nil {
			return err
		}
	}
	return removeGroup(dir, deadline)
}

// removeGroup kills the processes in a group and removes the group. It retries while the group is busy, because the
// kernel removes killed processes from a group with a delay.
func removeGroup(dir string, deadline time.Time) error {
	for {
		killProcesses(dir)
		err := os.Remove(dir)
		switch {
		case err == nil, errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, unix.EBUSY) || time.Now().After(deadline):
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// killProcesses kills the group's processes. It ignores errors: if a process survives, the later removal of the group
// returns an error.
func killProcesses(dir string) {
	for _, pid := range listProcesses(dir) {
		killMember(dir, pid)
	}
}

// killMember kills a process if it still belongs to the group. This check is necessary, because the process may have
// exited after the listing. A process outside of the group may then have the same ID.
func killMember(dir string, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// If the ID still belongs to the group, the descriptor (pidfd) refers to the group's process. The signal then reaches
	// no other process, even if the ID is reused later.
	if slices.Contains(listProcesses(dir), pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
