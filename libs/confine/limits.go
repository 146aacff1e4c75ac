// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Resource limits of functions.
const (
	maxFiles = 4096 // open at a time
	// killFirst has the kernel end functions before any other program when memory runs out.
	killFirst = "1000"
)

// limit bounds what a process and its later children use. What fails is not worth more than
// its limit: the process may have ended.
func (c *Confiner) limit(pid int) {
	for resource, value := range map[int]uint64{
		unix.RLIMIT_CORE:   0,
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
	_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: min(now.Cur, value), Max: min(now.Max, value)}, nil)
}
