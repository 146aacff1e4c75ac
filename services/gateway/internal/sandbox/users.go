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

// Where this program runs as root, each function has a user of its own on the machine, of so many from
// the first one on: no other program has them. The kernel bounds the processes of a user, so that a
// function that takes all of its own leaves those of others. Which function has which user is random, so that no name
// of an image can be made for the user of another one.
const (
	firstUser = 0x70000000
	users     = 1 << 20
)

// userOf returns the user that a function's launcher runs as, zero for this program's own.
func (l *Launcher) userOf(name string) uint32 {
	if !l.root {
		return 0
	}
	return firstUser + uint32(maphash.String(l.seed, name)%users) //nolint:gosec // it fits
}

// processes returns what tells how many processes the user of a sandbox may have, 0 for any number. The kernel counts
// all of that user. Where it is this program's own, it may have so many more than the user has.
func (l *Launcher) processes() func() int64 {
	if l.root {
		return func() int64 { return l.cfg.MaxProcesses }
	}
	own := &threads{user: uint32(os.Getuid())} //nolint:gosec // ids are not negative
	return func() int64 { return own.count(time.Now()) + l.cfg.MaxProcesses }
}

// threads are those of a user.
type threads struct {
	user uint32

	mu    sync.Mutex
	n     int64
	until time.Time
}

// countAgain is how long a number of threads is used: to count them takes milliseconds.
const countAgain = time.Second

// count returns how many threads the user has, or had a moment ago.
func (t *threads) count(now time.Time) int64 {
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
			continue // it has ended
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == t.user {
			tasks, _ := os.ReadDir(filepath.Join(process, "task"))
			t.n += int64(len(tasks))
		}
	}
	return t.n
}
