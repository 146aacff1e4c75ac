// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package osthread

// isMain returns false, because [Own] must avoid the main thread only on Linux.
func isMain() bool { return false }
