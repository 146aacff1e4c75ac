// SPDX-License-Identifier: Apache-2.0

package fnproc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unreadBytes is the ioctl for how much of a pipe is unread.
const unreadBytes = unix.TIOCINQ

// attributes returns how a process is started: as the leader of a session, with pidfd filled in, which the
// kernel kills with its starter.
func attributes(launch *Launch, pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: pidfd, Credential: launch.credential()}
	if launch.starter() != nil {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

func idOf(stat *syscall.Stat_t) fileID {
	return fileID{device: stat.Dev, inode: stat.Ino, size: stat.Size, modified: stat.Mtim, moved: stat.Ctim}
}

// filesInMemory returns how many files are in a file system in memory of a size, 0 if path is in another one: a
// launcher may not have changed its root directory yet.
func filesInMemory(path string, size int64) int64 {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
		return 0
	}
	blocks, files := int64(fs.Blocks), int64(fs.Files-fs.Ffree) //nolint:gosec // these numbers fit
	if blocks != (size+fs.Bsize-1)/fs.Bsize {
		return 0
	}
	return files
}
