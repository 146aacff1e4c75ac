// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// attempts is empty, because functions are confined only on Linux.
var attempts map[string]func(target string) error

// restoreDefault does nothing, because only tests on Linux send signals that Go's runtime handles.
func restoreDefault(int) {}
