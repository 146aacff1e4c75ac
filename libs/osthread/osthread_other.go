// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package osthread

// isMain returns false, because f changes threads irreversibly only on Linux.
func isMain() bool { return false }
