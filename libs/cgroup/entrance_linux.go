// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/krm-function-runner/function-runner/libs/thread"
)

// entrance is how processes get into a group from their beginning: they are cloned into one of version 2, and started
// by a thread that stays in one of version 1.
type entrance struct {
	dir   *os.File      // of version 2
	start chan func()   // for the thread; nil without
	ended chan struct{} // closed when the thread's goroutine has ended
	tid   int
}

// members is the file with what is in a group.
func (e *entrance) members() string {
	if e.dir != nil {
		return "cgroup.procs"
	}
	return "tasks"
}

// thread returns the id of the thread that stays in the group, 0 for none.
func (e *entrance) thread() int { return e.tid }

// open makes the group's entrance.
func (group *Group) open() (err error) {
	if group.groups.version == 2 {
		group.dir, err = os.Open(group.dirs[0])
		return err
	}
	group.start, group.ended = make(chan func()), make(chan struct{})
	entered := make(chan error, 1)
	go thread.Own(func() { group.serve(entered) })
	return <-entered
}

// serve enters the group with its thread, which is not the main one, whose group is that of this program's memory. On
// the thread it calls what start gets until that is closed. Then the thread ends.
func (group *Group) serve(entered chan<- error) {
	defer close(group.ended)
	group.tid = unix.Gettid()
	err := group.enter()
	entered <- err
	for start := range group.start {
		start()
	}
}

// enter moves the calling thread into the group.
func (group *Group) enter() error {
	for _, dir := range group.dirs {
		//nolint:gosec // the file is there
		if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0o644); err != nil {
			return fmt.Errorf("enter a control group: %w", err)
		}
	}
	return nil
}

// close closes the entrance.
func (e *entrance) close() error {
	if e.start != nil {
		close(e.start)
		<-e.ended
		e.start, e.tid = nil, 0
	}
	if e.dir == nil {
		return nil
	}
	return e.dir.Close()
}

// Start calls start, which starts a process with attr, so that the process begins in the group.
func (group *Group) Start(attr *syscall.SysProcAttr, start func()) {
	switch {
	case group == nil:
		start()
	case group.dir != nil:
		attr.UseCgroupFD, attr.CgroupFD = true, int(group.dir.Fd())
		start()
	default:
		done := make(chan struct{})
		group.start <- func() {
			defer close(done)
			start()
		}
		<-done
	}
}
