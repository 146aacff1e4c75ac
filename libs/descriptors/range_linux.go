// SPDX-License-Identifier: Apache-2.0

package descriptors

import (
	"math"

	"golang.org/x/sys/unix"
)

// closeRange marks all descriptors from first on as close-on-exec by a system call. It fails before Linux 5.11.
func closeRange(first uint) error {
	return unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
