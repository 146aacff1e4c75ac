// SPDX-License-Identifier: Apache-2.0

// Package filelock provides locks between processes. Each lock belongs to a file.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Acquire waits for the exclusive lock of a file. It creates the file and its directory if necessary. The lock is
// released when the caller calls unlock or the process exits.
func Acquire(path string) (unlock func(), err error) { return lock(path, unix.LOCK_EX) }

// Share waits for a shared lock of a file. Several processes can hold it, but no process can hold the exclusive lock at
// the same time.
func Share(path string) (unlock func(), err error) { return lock(path, unix.LOCK_SH) }

// ErrHeld means that another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Try is like Acquire but does not wait. It returns ErrHeld if another process holds the lock.
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
