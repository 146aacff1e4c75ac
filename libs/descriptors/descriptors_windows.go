// SPDX-License-Identifier: Apache-2.0

package descriptors

// CloseOnExec does nothing: on Windows, programs inherit only the handles that they are given.
func CloseOnExec() {}
