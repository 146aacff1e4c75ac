// SPDX-License-Identifier: Apache-2.0

package space

import "strconv"

// Enter returns a command line that runs the command in the namespaces of process pid, in the directory dir.
func Enter(pid int, dir string, command ...string) []string {
	// Use env to change the directory, because nsenter would resolve dir in the caller's mount namespace.
	return append([]string{
		"nsenter", "--target", strconv.Itoa(pid), "--mount", "--net", "--pid", "--ipc", "--uts",
		"--", "env", "--chdir=" + dir,
	}, command...)
}
