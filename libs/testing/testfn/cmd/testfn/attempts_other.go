// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// attempts is empty, because functions are confined only on Linux.
var attempts map[string]func(target string) error

// restoreDefault does nothing: only tests on Linux send signals that Go handles.
func restoreDefault(int) {}
