// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Resource limits of functions.
const (
	maxFiles = 4096 // open at a time
	// maxCore is the size with which the kernel writes no core file, and pipes none to a program of
	// the machine either, which would keep what callers sent. Zero bounds only files.
	maxCore = 1
	// killFirst has the kernel end functions before any other program when memory runs out.
	killFirst = "1000"
)

// limit bounds what a process and its later children use. What fails is not worth more than
// its limit: the process may have ended.
func (c *Confiner) limit(pid int) {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_CORE:   maxCore,
		unix.RLIMIT_NOFILE: maxFiles,
		unix.RLIMIT_FSIZE:  uint64(c.cfg.MaxTempBytes), //nolint:gosec // settings are checked
	} {
		lower(pid, resource, value)
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte(killFirst), 0)
}

// lower makes a limit at most value.
func lower(pid, resource int, value uint64) {
	var now unix.Rlimit
	if unix.Prlimit(pid, resource, nil, &now) != nil {
		return
	}
	limit := unix.Rlimit{Cur: min(now.Cur, value), Max: min(now.Max, value)}
	if resource == unix.RLIMIT_CORE {
		limit.Cur = limit.Max // see maxCore: it is more than zero, the usual one
	}
	_ = unix.Prlimit(pid, resource, &limit, nil)
}
