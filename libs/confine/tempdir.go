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

// maxTempDepth is the maximum nesting of directories in a temporary directory. It ensures that we can count and remove
// the files.
const maxTempDepth = 64

// TempDir is the temporary directory of a function's process. The methods of a nil TempDir do nothing.
type TempDir struct {
	dirs *tempDirs
	path string
	// shared contains the shared directories, such as /tmp, that the process may write to. It is usually empty. The
	// temporary directory may be inside one of the shared directories.
	shared []string
}

// withTempDir returns env with TMPDIR set to the temporary directory. If the home directory in env is not usable, it
// also sets HOME to the temporary directory.
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

// countShared makes files in the shared directories count towards the limits of the temporary directory.
func (d *TempDir) countShared(shared []string) {
	if d != nil {
		d.shared = shared
	}
}

// Remove removes the directory. If the removal fails because a process still writes to the directory, a later call of
// Remove for any directory retries it.
func (d *TempDir) Remove() error {
	if d == nil {
		return nil
	}
	return d.dirs.removeDir(d.path)
}

// RemoveLater removes the directory in the background, so that the removal does not delay the function's result. On a
// file system with a journal, a removal takes as long as the run of a small function. If too many removals are pending,
// RemoveLater removes the directory immediately.
func (d *TempDir) RemoveLater() {
	if d == nil {
		return
	}
	if !d.dirs.removeLater(d.path) {
		_ = d.Remove() // retried with a later directory
	}
}

// Limit returns the maximum size of the directory in bytes.
func (d *TempDir) Limit() int64 { return d.dirs.maxBytes }

// Free returns the number of bytes that may still be written to the directory. It returns false if a limit is
// exceeded, or if a directory cannot be counted because it is nested too deeply or unreadable.
func (d *TempDir) Free() (bytes int64, ok bool) {
	count := counter{bytes: d.dirs.maxBytes, files: d.dirs.maxFiles}
	paths := d.shared
	if !slices.ContainsFunc(paths, func(dir string) bool { return strings.HasPrefix(d.path, dir+"/") }) {
		paths = append(slices.Clip(paths), d.path)
	}
	for _, path := range paths {
		if !count.countTree(path) {
			return count.bytes, false
		}
	}
	return count.bytes, true
}

// counter contains the numbers of bytes and files that a function may still write.
type counter struct{ bytes, files int64 }

// countTree subtracts the files below path from the remaining bytes and files. It returns false if a limit is
// exceeded. A missing path counts as empty.
func (c *counter) countTree(path string) bool {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return disappeared(err)
	}
	defer func() { _ = dir.Close() }()
	return c.countEntries(dir, maxTempDepth)
}

// countEntries subtracts the entries of dir from the remaining bytes and files. It returns false if a limit is
// exceeded.
func (c *counter) countEntries(dir *os.File, depth int) bool {
	if depth == 0 {
		return false
	}
	for {
		names, err := dir.Readdirnames(128)
		for _, name := range names {
			if !c.countEntry(dir, name, depth) {
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

// usableShared returns the directories of [Config.Shared] that are empty. Functions must not write to other
// directories, because they could change the existing files, and their own files would remain there.
func (cfg Config) usableShared() (usable []string) {
	for _, dir := range cfg.Shared {
		switch entries, err := os.ReadDir(dir); {
		case err != nil: // functions cannot use a missing directory either
		case len(entries) > 0:
			cfg.Log.Warn("directory is not empty, functions cannot write to it (mount an empty volume there)", "path", dir)
		default:
			usable = append(usable, dir)
		}
	}
	return usable
}

// EmptyShared removes the files that functions wrote to the directories of [Config.Shared], and the temporary
// directories of all functions. It returns false if some files could not be removed. Callers must ensure that no
// function with access to the files is running.
func (c *Confiner) EmptyShared() (empty bool) {
	if c == nil {
		return true
	}
	empty = true
	for _, dir := range c.shared {
		// We restore the owner's permissions, because a function that runs as the owner may have removed them.
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o700 != 0o700 {
			_ = os.Chmod(dir, info.Mode()|0o700)
		}
		entries, err := os.ReadDir(dir)
		empty = empty && err == nil
		for _, entry := range entries {
			empty = removeAll(filepath.Join(dir, entry.Name())) == nil && empty
		}
	}
	c.temp.removeBase() // afterwards, because a new base directory may be in one of the shared directories
	return empty
}
