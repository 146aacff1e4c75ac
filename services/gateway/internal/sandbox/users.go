// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// The range of user IDs for functions if this program runs as root. No other program uses this range. Each function has
// its own user, because the kernel limits the processes of each user. A function thus cannot use up the limit of
// another function. The assignment is random, so that nobody can choose an image name to get another function's user.
const (
	firstUser = 0x70000000
	users     = 1 << 20
)

// userOf returns the user ID for the sandboxes of a function, or 0 if sandboxes run as this program's own user.
func (l *Launcher) userOf(name string) uint32 {
	if !l.root {
		return 0
	}
	return firstUser + uint32(maphash.String(l.seed, name)%users) //nolint:gosec // it fits
}

// processLimit returns a function that returns the current process limit of a sandbox's user. A limit of zero means no
// limit. If sandboxes run as this program's own user, the kernel also counts all other processes of this user. The
// returned limit is then MaxProcesses plus the current number of the user's processes.
func (l *Launcher) processLimit() func() int64 {
	if l.root {
		return func() int64 { return l.cfg.MaxProcesses }
	}
	own := &threads{user: uint32(os.Getuid())} //nolint:gosec // ids are not negative
	return func() int64 { return own.countThreads(time.Now()) + l.cfg.MaxProcesses }
}

// threads counts the threads of a user's processes. It stores the count for a second, because counting takes
// milliseconds.
type threads struct {
	user uint32

	mu    sync.Mutex
	n     int64
	until time.Time
}

// countAgain is the time after which the threads are counted again.
const countAgain = time.Second

// countThreads returns the number of the user's threads. The number is up to a second old.
func (t *threads) countThreads(now time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.until) {
		return t.n
	}
	t.n = 0
	t.until = now.Add(countAgain)
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		info, err := os.Stat(process)
		if err != nil {
			continue // the process has exited
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == t.user {
			tasks, _ := os.ReadDir(filepath.Join(process, "task"))
			t.n += int64(len(tasks))
		}
	}
	return t.n
}
