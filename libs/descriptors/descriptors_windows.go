// SPDX-License-Identifier: Apache-2.0

// Package descriptors prevents programs that this program starts from inheriting its open files.
package descriptors

// CloseOnExec does nothing: on Windows, a program inherits only the handles that its parent passes explicitly.
func CloseOnExec() {}
