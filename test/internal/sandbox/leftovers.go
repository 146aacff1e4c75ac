// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// runsDirectory returns the parent of the directories that NewDirectory creates. For root, it is /var/lib. This is
// because root runs the sandbox, which hides the directory for temporary files with an empty file system.
func runsDirectory() string {
	if Possible() {
		return "/var/lib"
	}
	return os.TempDir()
}

// NewDirectory creates a directory for files that all users can read. owner is the ID of the process that uses it.
func NewDirectory(owner int) (string, error) {
	dir := filepath.Join(runsDirectory(), prefix+strconv.Itoa(owner))
	return dir, os.Mkdir(dir, 0o755)
}

// Sweep removes the control groups and the directory of a process. The argument owner is the ID of this process. Call
// Sweep when the process exits, or later.
func Sweep(owner int) error {
	var failures []error
	for _, root := range []string{v1.root, v2.root, processorsRoot} {
		groups, _ := filepath.Glob(filepath.Join(root, prefix+strconv.Itoa(owner)+"-*"))
		for _, group := range groups {
			failures = append(failures, removeGroup(group))
		}
	}
	return errors.Join(append(failures, os.RemoveAll(filepath.Join(runsDirectory(), prefix+strconv.Itoa(owner))))...)
}

// SweepAll removes the control groups and directories of processes that no longer exist.
func SweepAll() error {
	var failures []error
	for _, root := range []string{v1.root, v2.root, processorsRoot, runsDirectory()} {
		left, _ := filepath.Glob(filepath.Join(root, prefix+"*"))
		for _, path := range left {
			number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), prefix), "-")
			owner, err := strconv.Atoi(number)
			if err != nil {
				continue
			}
			if _, err := os.Stat(filepath.Join("/proc", number)); os.IsNotExist(err) {
				failures = append(failures, Sweep(owner))
			}
		}
	}
	return errors.Join(failures...)
}
