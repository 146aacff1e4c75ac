// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package thread

// isMain returns false: only Linux threads are changed irreversibly.
func isMain() bool { return false }
