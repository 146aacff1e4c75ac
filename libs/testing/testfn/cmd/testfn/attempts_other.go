// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// attempts is empty, because functions are confined only on Linux.
var attempts map[string]func(target string) error

// restoreDefault does nothing: it is needed only for signals that Go handles, and tests on other systems do not
// send such signals.
func restoreDefault(int) {}
