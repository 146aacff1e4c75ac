// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tempPrefix begins the name of each directory that contains the temporary directories of a program's functions. No
// other directory may have this prefix, because sweep removes directories with the prefix after a crash.
const tempPrefix = "fnr-function-files-"

// tempDirs creates temporary directories for functions below a base directory, which only this program uses. A lock on
// the base directory prevents other programs from removing it.
type tempDirs struct {
	parent   string
	maxBytes int64
	maxFiles int64
	removals sync.WaitGroup // pending removals of removeLater

	mu        sync.Mutex
	base      string
	lock      *os.File // nil if there is no base directory
	unremoved []string // failed removals, to be retried
	removing  int      // removals that are pending or running
	closed    bool
}

// removeAfter is the delay before a directory is removed in the background. On a machine with two processors, an
// immediate removal would occupy a processor that is needed to send the answer.
const removeAfter = 5 * time.Millisecond

// maxRemoving is the maximum number of temporary directories that wait to be removed in the background.
const maxRemoving = 16

// newTempDirs creates the base directory for the temporary directories of functions.
func newTempDirs(cfg Config) (*tempDirs, error) {
	t := &tempDirs{parent: cfg.TempDir, maxBytes: cfg.MaxTempBytes, maxFiles: cfg.MaxTempFiles}
	if _, err := t.openBase(); err != nil {
		return nil, err
	}
	return t, nil
}

// openBase returns the usable base directory. It creates a new one if there is none.
func (t *tempDirs) openBase() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lock != nil {
		return t.base, restoreMode(t.lock)
	}
	base, err := os.MkdirTemp(t.parent, tempPrefix)
	if err != nil {
		return "", fmt.Errorf("make a directory for the temporary files of functions: %w", err)
	}
	lock, err := lockDir(base)
	if err != nil {
		err = fmt.Errorf("lock the directory for the temporary files of functions: %w", err)
		return "", errors.Join(err, os.Remove(base))
	}
	t.base = base
	t.lock = lock
	return base, nil
}

// removeBase removes the base directory with all temporary directories. Even if the removal fails, this program no
// longer uses the directory. The next program that starts then removes it with sweep.
func (t *tempDirs) removeBase() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = removeAll(t.base)
	_ = t.lock.Close() // fails if there is no base directory
	t.lock = nil
}

// lockDir locks a directory until the returned file is closed or this program exits.
func lockDir(path string) (*os.File, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// sweep removes the base directories that crashed programs left behind in parent. It skips base directories that are
// locked, because their programs are still running.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		path := filepath.Join(parent, entry.Name())
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		if lock, err := lockDir(path); err == nil {
			_ = removeAll(path)
			_ = lock.Close()
		}
	}
}

// makeDir creates the temporary directory of a process. It returns nil if t is nil, because functions then have no
// temporary directories.
func (t *tempDirs) makeDir() (*TempDir, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // functions go without
	}
	base, err := t.openBase()
	path := filepath.Join(base, rand.Text()) // unpredictable for other functions
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make a function's temporary directory: %w", err)
	}
	return &TempDir{dirs: t, path: path}, nil
}

// removeDir removes a temporary directory. It also retries earlier removals that failed.
func (t *tempDirs) removeDir(path string) error {
	t.mu.Lock()
	paths := t.unremoved
	t.unremoved = nil
	t.mu.Unlock()
	var errs []error
	for _, path := range append(paths, path) {
		if err := removeAll(path); err != nil {
			errs = append(errs, fmt.Errorf("remove a function's temporary directory: %w", err))
			t.mu.Lock()
			t.unremoved = append(t.unremoved, path)
			t.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}

// restoreMode restores the permissions of the base directory. A function can change them, because the function's
// user owns the directory. It returns an error if base is nil.
func restoreMode(base *os.File) error {
	info, err := base.Stat()
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	return base.Chmod(0o700)
}

// removeLater removes a directory in the background, after the delay removeAfter. It returns false if too many
// removals are pending or t is closed.
func (t *tempDirs) removeLater(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = restoreMode(t.lock) // retried before the next directory is created
	if t.closed || t.removing == maxRemoving {
		return false
	}
	t.removing++
	t.removals.Add(1)
	time.AfterFunc(removeAfter, func() {
		defer t.removals.Done()
		_ = t.removeDir(path) // retried with a later directory
		t.mu.Lock()
		defer t.mu.Unlock()
		t.removing--
	})
	return true
}

// close removes the base directory with all temporary directories.
func (t *tempDirs) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.removals.Wait()
	t.removeBase()
}

// removeAll removes a directory with its contents, even if a function has changed permissions of directories in it.
func removeAll(path string) error {
	if os.Remove(path) == nil || os.RemoveAll(path) == nil { // most directories are empty
		return nil
	}
	if err := restoreRights(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(path)
}

// restoreRights makes path and all directories below it accessible again. It does not follow symbolic links out of
// path.
func restoreRights(path string) error {
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a directory needs to be searched
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return root.Chmod(name, 0o700)
	})
}
