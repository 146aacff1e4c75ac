// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package program

// Slacken does nothing: only Linux has slack.
func Slacken() {}
