// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Kinds of locks.
const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

// errBusy is the error for a lock that another process, or another part of this process, holds.
var errBusy = errors.New("it is locked")

// lock waits for a lock, and returns the open file that holds it until it is closed.
func (s *Store) lock(ctx context.Context, name string, kind int) (*os.File, error) {
	backoff := retry.Backoff{First: time.Millisecond, Max: 100 * time.Millisecond}
	for {
		file, err := s.tryLock(name, kind)
		if !errors.Is(err, errBusy) {
			return file, err
		}
		if !backoff.Wait(ctx) {
			return nil, ctx.Err()
		}
	}
}

// tryLock is lock without waiting: it returns errBusy if the lock is held. It creates the file if it is missing.
func (s *Store) tryLock(name string, kind int) (*os.File, error) {
	for {
		file, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, s.explainDiskError(err)
		}
		if err := lockFile(file, kind|syscall.LOCK_NB); err != nil {
			_ = file.Close()
			return nil, err
		}
		if s.isSameFile(file, name) {
			return file, nil
		}
		_ = file.Close() // the previous holder removed the file: the name now belongs to another file
	}
}

// isSameFile reports whether the name still belongs to the file.
func (s *Store) isSameFile(file *os.File, name string) bool {
	locked, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := s.root.Lstat(name)
	return err == nil && os.SameFile(locked, named)
}

func lockFile(file *os.File, how int) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var lockErr error
	if err := raw.Control(func(fd uintptr) { lockErr = syscall.Flock(int(fd), how) }); err != nil {
		return err
	}
	if errors.Is(lockErr, syscall.EWOULDBLOCK) {
		return errBusy
	}
	if lockErr != nil {
		return fmt.Errorf("lock %s: %w", file.Name(), lockErr)
	}
	return nil
}
