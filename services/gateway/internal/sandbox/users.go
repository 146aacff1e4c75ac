// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
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

// attributes returns the attributes of a launcher's process: it leads a session, as those of functions do.
func attributes(launch *fnproc.Launch) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if launch.User != 0 {
		attr.Credential = &syscall.Credential{Uid: launch.User, Gid: launch.Group}
	}
	return attr
}

// ownThreads returns how many threads the user of this program has now: the kernel counts them
// together with those of sandboxes.
func ownThreads() (n int64) {
	id := uint32(os.Getuid()) //nolint:gosec // ids are not negative
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	for _, task := range tasks {
		info, err := os.Stat(task)
		if err != nil {
			continue // it has ended
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid == id {
			n++
		}
	}
	return n
}
