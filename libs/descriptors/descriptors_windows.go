// SPDX-License-Identifier: Apache-2.0

// Package descriptors keeps open files of this program from the programs that it starts.
package descriptors

// CloseOnExec does nothing: on Windows, programs inherit only the handles that they are given.
func CloseOnExec() {}
