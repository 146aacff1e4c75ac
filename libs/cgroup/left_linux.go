// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// hold locks the group's directories until it is removed, or until this program ends, however it does. The lock tells
// programs in other pid namespaces, which do not see this one, that the group is in use.
func (group *Group) hold() error {
	for _, name := range group.dirs {
		dir, err := os.Open(name)
		if err != nil {
			return err
		}
		group.held = append(group.held, dir)
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_SH); err != nil {
			return fmt.Errorf("lock a control group: %w", err)
		}
	}
	return nil
}

// isHeld reports whether the program that made a group has not ended.
func isHeld(group string) bool {
	dir, err := os.Open(group)
	if err != nil {
		return true
	}
	defer func() { _ = dir.Close() }()
	return unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

// killMembers kills what is in a group. Processes of pid namespaces that this program does not see stay.
func killMembers(group string) {
	if (setting{file: "cgroup.kill", value: 1}).write(group) == nil { // version 2, since Linux 5.14
		return
	}
	members, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	for id := range bytes.FieldsSeq(members) {
		if pid, err := strconv.Atoi(string(id)); err == nil && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}
