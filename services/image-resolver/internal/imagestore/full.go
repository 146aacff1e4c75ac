// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// exhausted are the errors of file systems that take nothing more.
var exhausted = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO}

// full words an error of the store's file system. Other errors stay.
func (s *Store) full(err error) error {
	for _, reason := range exhausted {
		if errors.Is(err, reason) {
			return fault.New(fault.Exhausted, "write to the image store %s: %w: "+
				"free some space there, or set FNR_SANDBOX_STORE to another directory", s.cfg.Dir, reason)
		}
	}
	_, ofPath := errors.AsType[*fs.PathError](err)
	_, ofLink := errors.AsType[*os.LinkError](err)
	if (ofPath || ofLink) && fault.Of(err) == fault.Internal {
		return fault.New(fault.Internal, "use the image store %s: %w: "+
			"set FNR_SANDBOX_STORE to a directory of its own", s.cfg.Dir, err)
	}
	return err
}
