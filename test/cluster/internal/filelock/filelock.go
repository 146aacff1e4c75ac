// Package filelock makes processes take turns.
package filelock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Acquire waits for the exclusive lock of a file, which it creates together
// with its folder. The lock ends with unlock, or with the process.
func Acquire(path string) (unlock func(), err error) { return lock(path, unix.LOCK_EX) }

// Share waits for a lock of a file that many can have at a time, but not beside
// an exclusive one.
func Share(path string) (unlock func(), err error) { return lock(path, unix.LOCK_SH) }

// ErrHeld says that somebody else has a lock.
var ErrHeld = errors.New("somebody else has it")

// Try is Acquire for those who do not wait: the error is ErrHeld then.
func Try(path string) (unlock func(), err error) { return lock(path, unix.LOCK_EX|unix.LOCK_NB) }

func lock(path string, how int) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	err = unix.Flock(int(file.Fd()), how)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, errors.Join(err, file.Close()))
	}
	return func() { _ = file.Close() }, nil
}
