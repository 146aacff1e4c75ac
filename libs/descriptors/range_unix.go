// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package descriptors

import "errors"

// closeRange fails: the system call is Linux's.
func closeRange(uint) error { return errors.ErrUnsupported }
