// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Group is a control group. Nil limits nothing.
type Group struct {
	groups *Groups
	dirs   []string
	events string
	kills  int64 // until it was taken
	held   []*os.File
	entrance
}

// Release gives the group back. Processes that are still in it keep it from being used again.
func (group *Group) Release() {
	if group == nil {
		return
	}
	g := group.groups
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free = append(g.free, group)
}

// Killed reports whether the kernel has killed a process of the group for memory since it was taken.
func (group *Group) Killed() bool {
	if group == nil {
		return false
	}
	kills, ok := group.count()
	return ok && kills > group.kills
}

// count reads how many processes of the group were killed.
func (group *Group) count() (kills int64, ok bool) {
	return (&Kills{counter: group.events}).count()
}

// Memory returns how many bytes the group may have; zero is no limit.
func (group *Group) Memory() int64 {
	if group == nil {
		return 0
	}
	return group.groups.limits.Memory
}

// empty reports whether the group has no processes and no threads but the one through which processes enter.
func (group *Group) empty() bool {
	for _, dir := range group.dirs {
		content, err := os.ReadFile(filepath.Join(dir, group.members()))
		if err != nil {
			return false
		}
		for id := range bytes.FieldsSeq(content) {
			if string(id) != strconv.Itoa(group.thread()) {
				return false
			}
		}
	}
	return true
}

// remove removes the group.
func (group *Group) remove() error {
	failures := group.close()
	for _, dir := range group.held {
		_ = dir.Close()
	}
	for _, dir := range group.dirs {
		failures = errors.Join(failures, removeSoon(dir))
	}
	return failures
}

// removeSoon removes a group whose last process or thread is about to end.
func removeSoon(dir string) (err error) {
	for range 50 {
		if err = os.Remove(dir); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
	return err
}
