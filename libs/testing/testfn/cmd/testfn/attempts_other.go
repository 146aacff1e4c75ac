// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// attempts is empty: confinement is for Linux.
var attempts map[string]func(target string) error

// restoreDefault does nothing: Go handles no signal that tests send.
func restoreDefault(int) {}
