// SPDX-License-Identifier: Apache-2.0

package descriptors

import (
	"math"

	"golang.org/x/sys/unix"
)

// closeRange marks all descriptors that are at least first as close-on-exec, with a single system call. It fails on
// kernels before Linux 5.11.
func closeRange(first uint) error {
	return unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
