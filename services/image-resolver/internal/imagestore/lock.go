// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// Kinds of file locks.
const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

// errBusy is the error of tryLock if another process, or another goroutine, holds the lock.
var errBusy = errors.New("it is locked")

// lock waits for a shared or exclusive lock and returns the lock file. Callers close the file to release the lock.
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

// tryLock is like lock, but returns errBusy instead of waiting for another holder. It creates a missing lock file.
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

// isSameFile reports whether name is still the path of the open file. Other processes may remove and create lock files.
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

// explainDiskError adds the store's directory and advice for the user to an error of the file system. It returns
// other errors unchanged.
func (s *Store) explainDiskError(err error) error {
	if reason := registry.DiskFailure(err); reason != nil {
		return fault.New(fault.Exhausted, "write to the image store %s: %w: "+
			"free some space there, or set FNR_SANDBOX_STORE to another directory", s.cfg.Dir, reason)
	}
	_, ofPath := errors.AsType[*fs.PathError](err)
	_, ofLink := errors.AsType[*os.LinkError](err)
	if (ofPath || ofLink) && fault.Of(err) == fault.Internal {
		return fault.New(fault.Internal, "use the image store %s: %w: "+
			"set FNR_SANDBOX_STORE to a directory of its own", s.cfg.Dir, err)
	}
	return err
}
