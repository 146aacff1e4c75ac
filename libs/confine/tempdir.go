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

// maxTempDepth bounds how deep directories may be nested, so that they can be counted and
// removed.
const maxTempDepth = 64

// TempDir is the temporary directory of one process. A nil TempDir is none.
type TempDir struct {
	dirs *tempDirs
	path string
	// shared are the directories that the process uses besides; it has none as a rule.
	shared sharedDirs
}

// environment returns env with the variable that names the directory, which is also the home directory of a process
// that has no other.
func (d *TempDir) environment(env []string) []string {
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

// countShared makes the contents of shared directories count in the limits.
func (d *TempDir) countShared(shared sharedDirs) {
	if d != nil {
		d.shared = shared
	}
}

// Remove removes the directory. What cannot be removed, since a process still writes to it,
// is removed with a later one.
func (d *TempDir) Remove() error {
	if d == nil {
		return nil
	}
	return d.dirs.remove(d.path)
}

// RemoveLater removes the directory after the evaluation, unless many wait for that already: a
// file system with a journal takes as long for it as a small function runs.
func (d *TempDir) RemoveLater() {
	if d == nil {
		return
	}
	_ = d.dirs.restoreMode() // tried again before the next one is made
	if !d.dirs.removeLater(d.path) {
		_ = d.Remove() // tried again with a later one
	}
}

// Limit returns how many bytes the directory may have.
func (d *TempDir) Limit() int64 { return d.dirs.maxBytes }

// Free returns how many bytes may still be written to the directory. It reports false if
// there is more in it than allowed, or what cannot be counted: directories nested too deep,
// or unreadable ones.
func (d *TempDir) Free() (bytes int64, ok bool) {
	count := counter{bytes: d.dirs.maxBytes, files: d.dirs.maxFiles, kept: d.shared.kept}
	for _, path := range append([]string{d.path}, d.shared.paths...) {
		if !count.takeAll(path) {
			return count.bytes, false
		}
	}
	return count.bytes, true
}

// counter counts down what is left of the limits.
type counter struct {
	bytes, files int64
	// kept are the paths that do not count.
	kept map[string]bool
}

// takeAll takes what is in the directory at a path, which may be missing.
func (c *counter) takeAll(path string) bool {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	defer func() { _ = dir.Close() }()
	return c.take(dir, maxTempDepth)
}

// take takes what is in dir, and reports whether there was enough left.
func (c *counter) take(dir *os.File, depth int) bool {
	if depth == 0 {
		return false
	}
	for {
		names, err := dir.Readdirnames(128)
		for _, name := range names {
			if !c.kept[filepath.Join(dir.Name(), name)] && !c.takeEntry(dir, name, depth) {
				return false
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

func (c *counter) takeEntry(dir *os.File, name string, depth int) bool {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return errors.Is(err, unix.ENOENT) // removed meanwhile
	}
	const blockSize = 512 // of Blocks, whatever the file system's is
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
		return errors.Is(err, unix.ENOENT)
	}
	below := os.NewFile(uintptr(fd), name)
	defer func() { _ = below.Close() }()
	return c.take(below, depth-1)
}
