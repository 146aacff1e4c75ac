// SPDX-License-Identifier: Apache-2.0

// Package descriptors keeps open files of this program from the programs that it starts.
package descriptors

// CloseOnExec does nothing: on Windows, a program inherits only the handles that its parent passes explicitly.
func CloseOnExec() {}
