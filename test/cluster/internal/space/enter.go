// SPDX-License-Identifier: Apache-2.0

package space

import "strconv"

// Enter returns the command line that runs a command in the namespaces of a process, in the
// directory dir.
func Enter(pid int, dir string, command ...string) []string {
	// The directory is entered last: nsenter would keep the caller's mount of it.
	return append([]string{
		"nsenter", "--target", strconv.Itoa(pid), "--mount", "--net", "--pid", "--ipc", "--uts",
		"--", "env", "--chdir=" + dir,
	}, command...)
}
