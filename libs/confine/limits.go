// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Set sets the resource limits of a process that runs as the given user and group. User zero means the user of this
// program. Set never raises a limit. It also raises the OOM score of the process, so that the kernel kills this process
// first when memory runs out.
func (l Limits) Set(pid int, user, group uint32) (err error) {
	if user == 0 {
		return l.setAll(pid)
	}
	asThread(user, group, func() { err = l.setAll(pid) })
	return err
}

// asThread calls f on a thread whose real ids are the given user and group. The effective ids do not change. In
// containers, root lacks the capability CAP_SYS_RESOURCE. Without it, the kernel lets a thread limit only processes
// with the same real ids. If asThread cannot set the ids, it calls f anyway.
func asThread(user, group uint32, f func()) {
	runtime.LockOSThread()
	uid, gid := os.Getuid(), os.Getgid()
	const same = ^uintptr(0)
	set := func(user, group uintptr) unix.Errno { // changes this thread; package syscall would change all threads
		_, _, err := unix.RawSyscall(unix.SYS_SETRESGID, group, same, same)
		if err == 0 {
			_, _, err = unix.RawSyscall(unix.SYS_SETRESUID, user, same, same)
		}
		return err
	}
	_ = set(uintptr(user), uintptr(group))
	f()
	if set(uintptr(uid), uintptr(gid)) == 0 {
		runtime.UnlockOSThread() // otherwise the thread exits with its goroutine
	}
}

func (l Limits) setAll(pid int) error {
	for _, limit := range []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_CORE, MaxCore},
		{unix.RLIMIT_NOFILE, MaxFiles},
		{unix.RLIMIT_FSIZE, l.FileBytes},
		{unix.RLIMIT_DATA, l.DataBytes},
		{unix.RLIMIT_NPROC, l.Processes},
	} {
		if limit.value == 0 {
			continue
		}
		if err := lowerLimit(pid, limit.resource, uint64(limit.value)); err != nil { //nolint:gosec // settings are checked
			return fmt.Errorf("limit a process: %w", err)
		}
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(KillFirst)), 0) // errors are ignored
	return l.checkData(pid)
}

// maxStack is the usual maximum size of a stack. The kernel includes this size in the private memory that it reports.
const maxStack = 8 << 20

// checkData returns an error if the process uses more private memory than DataBytes permits. This can happen because
// the kernel does not reclaim memory that the process allocated before the limit was set.
func (l Limits) checkData(pid int) error {
	if l.DataBytes == 0 { // local binaries have no such limit: save the read of a file
		return nil
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)) // empty if the process has exited
	fields := strings.Fields(string(text))
	if len(fields) < 6 {
		return nil
	}
	pages, err := strconv.ParseInt(fields[5], 10, 64)
	if used := pages * int64(os.Getpagesize()); err == nil && used > l.DataBytes+maxStack {
		return fmt.Errorf("out of memory: the process has %d bytes, and may have %d", used, l.DataBytes)
	}
	return nil
}

// lowerLimit sets a resource limit of a process to value, unless the limit is already lower.
func lowerLimit(pid, resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
		return err
	}
	limit := unix.Rlimit{Cur: min(now.Cur, value), Max: min(now.Max, value)}
	if resource == unix.RLIMIT_CORE {
		limit.Cur = limit.Max // soft limit, which must be above zero: see [MaxCore]
	}
	return unix.Prlimit(pid, resource, &limit, nil)
}
