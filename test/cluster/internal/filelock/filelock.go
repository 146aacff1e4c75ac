// SPDX-License-Identifier: Apache-2.0

// Package filelock locks files between processes.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Acquire waits for the exclusive lock of a file, which it creates together with its directory. The
// lock ends with unlock, or with the process.
func Acquire(path string) (unlock func(), err error) { return lock(path, unix.LOCK_EX) }

// Share waits for a shared lock of a file. It excludes exclusive locks only.
func Share(path string) (unlock func(), err error) { return lock(path, unix.LOCK_SH) }

// ErrHeld reports that another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Try is Acquire without a wait: if the lock is held, the error is ErrHeld.
func Try(path string) (unlock func(), err error) { return lock(path, unix.LOCK_EX|unix.LOCK_NB) }

func lock(path string, how int) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	err = unix.Flock(int(file.Fd()), how)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, file.Close()))
	}
	return func() { _ = file.Close() }, nil
}
