// SPDX-License-Identifier: Apache-2.0

package thread

import "golang.org/x/sys/unix"

// isMain reports whether the calling goroutine runs on the main thread.
func isMain() bool { return unix.Gettid() == unix.Getpid() }
