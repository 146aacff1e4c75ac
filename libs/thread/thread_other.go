// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package thread

// isMain reports nothing here: what is changed for good, only Linux has for each thread.
func isMain() bool { return false }
