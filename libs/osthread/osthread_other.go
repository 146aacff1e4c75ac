// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package osthread

// isMain always returns false: f changes threads irreversibly only on Linux, so that other systems need not avoid
// the main thread.
func isMain() bool { return false }
