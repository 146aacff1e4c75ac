// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"errors"
	"io/fs"
	"os"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// explainDiskError adds the directory and a remedy to an error of the store's file system. It returns other errors
// unchanged.
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
