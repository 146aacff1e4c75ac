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

// Where this program runs as root, each function runs as its own user of the machine, from this range, which no other
// program uses. The kernel limits the processes of each user, so that a function that uses up its processes leaves the
// processes of other functions. The assignment is random, so that nobody can choose an image name to get another
// function's user.
const (
	firstUser = 0x70000000
	users     = 1 << 20
)

// userOf returns the user of a function's launcher, or zero for this program's own user.
func (l *Launcher) userOf(name string) uint32 {
	if !l.root {
		return 0
	}
	return firstUser + uint32(maphash.String(l.seed, name)%users) //nolint:gosec // it fits
}

// processLimit returns a function that returns the maximum number of processes of a sandbox's user. 0 means no limit.
// The kernel counts all processes of the user. If the user is this program's own, the maximum is added to the user's
// current processes.
func (l *Launcher) processLimit() func() int64 {
	if l.root {
		return func() int64 { return l.cfg.MaxProcesses }
	}
	own := &threads{user: uint32(os.Getuid())} //nolint:gosec // ids are not negative
	return func() int64 { return own.countThreads(time.Now()) + l.cfg.MaxProcesses }
}

// threads counts the threads of a user.
type threads struct {
	user uint32

	mu    sync.Mutex
	n     int64
	until time.Time
}

// countAgain is the time for which a count of threads is reused, because counting needs milliseconds.
const countAgain = time.Second

// countThreads returns the number of the user's threads, as of at most countAgain ago.
func (t *threads) countThreads(now time.Time) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Before(t.until) {
		return t.n
	}
	t.n, t.until = 0, now.Add(countAgain)
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
