// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package descriptors

import "errors"

// closeRange fails, because only Linux has this system call.
func closeRange(uint) error { return errors.ErrUnsupported }
