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

// Remove kills the processes in the named group, and removes it with all groups below it. It waits
// until deadline for the killed processes to exit.
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

// removeTree removes a group's directories from the leaves up. Their files belong to the kernel and
// go with them.
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

// removeGroup retries while the kernel still counts a dead process.
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

// killProcesses kills the group's processes. Processes that it cannot read or kill make the removal of the
// group fail.
func killProcesses(dir string) {
	for _, pid := range listProcesses(dir) {
		killMember(dir, pid)
	}
}

// killMember kills a process if it belongs to the group: it may have exited since it was listed, and
// its number be another's.
func killMember(dir string, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	// From here on the descriptor identifies a fixed process: check again.
	if slices.Contains(listProcesses(dir), pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
