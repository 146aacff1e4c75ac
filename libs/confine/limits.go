// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// limit limits a process. What fails is not worth more than its limit: the process may have ended.
func (c *Confiner) limit(pid int) { _ = Limits{FileBytes: c.cfg.MaxTempBytes}.Set(pid, 0, 0) }

// Set limits a process that runs as a user and a group, zero for this program's own. Limits do not rise thereby. When
// memory runs out, the kernel ends the process first.
func (l Limits) Set(pid int, user, group uint32) (err error) {
	if user == 0 {
		return l.set(pid)
	}
	asThread(user, group, func() { err = l.set(pid) })
	return err
}

// asThread calls f on a thread whose real ids are those of a user and a group: by them the kernel decides who may limit
// a process, besides by a capability that root lacks in containers. Without them f is called all the same. All else
// depends on the effective ids, which stay.
func asThread(user, group uint32, f func()) {
	runtime.LockOSThread()
	uid, gid := os.Getuid(), os.Getgid()
	const same = ^uintptr(0)
	set := func(user, group uintptr) error { // of this thread alone, which package syscall avoids
		_, _, err := unix.RawSyscall(unix.SYS_SETRESGID, group, same, same)
		if err == 0 {
			_, _, err = unix.RawSyscall(unix.SYS_SETRESUID, user, same, same)
		}
		if err != 0 {
			return err
		}
		return nil
	}
	_ = set(uintptr(user), uintptr(group))
	f()
	if set(uintptr(uid), uintptr(gid)) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
}

func (l Limits) set(pid int) error {
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
		if err := lower(pid, limit.resource, uint64(limit.value)); err != nil { //nolint:gosec // settings are checked
			return fmt.Errorf("limit a process: %w", err)
		}
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(strconv.Itoa(KillFirst)), 0) // no promise
	return nil
}

// lower makes a limit at most value.
func lower(pid, resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &now); err != nil {
		return err
	}
	limit := unix.Rlimit{Cur: min(now.Cur, value), Max: min(now.Max, value)}
	if resource == unix.RLIMIT_CORE {
		limit.Cur = limit.Max // see [MaxCore]: it is more than zero, the usual one
	}
	return unix.Prlimit(pid, resource, &limit, nil)
}
