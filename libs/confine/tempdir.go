// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxTempDepth is the maximum nesting of a temporary directory, so that its files can be counted and removed.
const maxTempDepth = 64

// TempDir is the temporary directory of a function's process. The methods of a nil TempDir do nothing.
type TempDir struct {
	dirs *tempDirs
	path string
	// shared contains other directories that the process may write to. It is usually empty.
	shared sharedDirs
}

// withTempDir returns env with the directory as TMPDIR. If the home directory in env is not usable, it also sets
// HOME.
func (d *TempDir) withTempDir(env []string) []string {
	if d == nil {
		return env
	}
	home := ""
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		if value, ok := strings.CutPrefix(v, "HOME="); ok {
			home = value
		}
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "HOME=")
	})
	if info, err := os.Stat(home); err != nil || !info.IsDir() || home == "/" {
		home = d.path
	}
	return append(env, "TMPDIR="+d.path, "HOME="+home)
}

// countShared applies the limits of the temporary directory also to the files in the shared directories.
func (d *TempDir) countShared(shared sharedDirs) {
	if d != nil {
		d.shared = shared
	}
}

// Remove removes the directory. If that fails because a process still writes to the directory, the removal is
// retried when a later directory is removed.
func (d *TempDir) Remove() error {
	if d == nil {
		return nil
	}
	return d.dirs.removeDir(d.path)
}

// RemoveLater removes the directory in the background, so that the removal does not delay the answer. On a file
// system with a journal, a removal takes as long as a small function. If too many removals are pending, RemoveLater
// removes the directory immediately.
func (d *TempDir) RemoveLater() {
	if d == nil {
		return
	}
	_ = d.dirs.restoreMode() // retried before the next directory is created
	if !d.dirs.removeLater(d.path) {
		_ = d.Remove() // retried with a later directory
	}
}

// Limit returns the maximum size of the directory in bytes.
func (d *TempDir) Limit() int64 { return d.dirs.maxBytes }

// Free returns the number of bytes that may still be written to the directory. It returns false if a limit is
// exceeded, or if a directory cannot be counted because it is nested too deeply or unreadable.
func (d *TempDir) Free() (bytes int64, ok bool) {
	count := counter{bytes: d.dirs.maxBytes, files: d.dirs.maxFiles, kept: d.shared.kept}
	for _, path := range append([]string{d.path}, d.shared.paths...) {
		if !count.countTree(path) {
			return count.bytes, false
		}
	}
	return count.bytes, true
}

// counter contains the numbers of bytes and files that a function may still write.
type counter struct {
	bytes, files int64
	// kept contains the paths that do not count, because they existed before the function ran.
	kept map[string]bool
}

// countTree subtracts the files below path from the limits. It returns false if a limit is exceeded. The path need
// not exist.
func (c *counter) countTree(path string) bool {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return disappeared(err)
	}
	defer func() { _ = dir.Close() }()
	return c.countEntries(dir, maxTempDepth)
}

// countEntries subtracts the entries of dir from the limits. It returns false if a limit is exceeded.
func (c *counter) countEntries(dir *os.File, depth int) bool {
	if depth == 0 {
		return false
	}
	for {
		names, err := dir.Readdirnames(128)
		for _, name := range names {
			if !c.kept[filepath.Join(dir.Name(), name)] && !c.countEntry(dir, name, depth) {
				return false
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF) || disappeared(err)
		}
	}
}

// disappeared reports whether err means that the function removed or replaced a file during the count. Functions
// may do this at any time. The next check counts the new file.
func disappeared(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func (c *counter) countEntry(dir *os.File, name string, depth int) bool {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return disappeared(err)
	}
	const blockSize = 512 // unit of Blocks on all file systems
	c.files--
	c.bytes -= stat.Blocks * blockSize
	if c.files < 0 || c.bytes < 0 {
		return false
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return true
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return disappeared(err)
	}
	below := os.NewFile(uintptr(fd), name)
	defer func() { _ = below.Close() }()
	return c.countEntries(below, depth-1)
}

// sharedDirs contains the directories of [Config.Shared] and the entries that they had before functions ran.
type sharedDirs struct {
	paths []string
	// kept contains the entries that existed before the first function started. EmptyShared does not remove them.
	kept map[string]bool
}

func newSharedDirs(paths []string) sharedDirs {
	s := sharedDirs{paths: paths, kept: map[string]bool{}}
	for _, entry := range s.entries() {
		s.kept[entry] = true
	}
	return s
}

// entries returns the paths of all entries in the shared directories.
func (s sharedDirs) entries() (entries []string) {
	for _, dir := range s.paths {
		found, _ := os.ReadDir(dir) // a missing directory is of no use to a function either
		for _, entry := range found {
			entries = append(entries, filepath.Join(dir, entry.Name()))
		}
	}
	return entries
}

// EmptyShared removes the files that functions wrote to the directories of [Config.Shared]. No function may be
// running with access to them.
func (c *Confiner) EmptyShared() {
	if c == nil {
		return
	}
	for _, entry := range c.shared.entries() {
		if !c.shared.kept[entry] {
			_ = removeAll(entry) // remaining files count towards the limits of the next function
		}
	}
}
