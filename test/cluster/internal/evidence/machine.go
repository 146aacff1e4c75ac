// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// groupLines returns a line for each control group, with the group's path and the IDs of its processes.
func groupLines(groups map[string][]int) []byte {
	var out bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintln(&out, path, groups[path])
	}
	return out.Bytes()
}

// processLines describes each process on a line. The line contains the IDs on the machine and in the cluster, the name,
// the state, the kernel function in which the process waits, and the command line.
func processLines(pids []int) []byte {
	var out bytes.Buffer
	for _, pid := range pids {
		status := statusFields(pid)
		_, inside, _ := strings.Cut(status["NSpid"], "\t")
		waits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid)) // missing in some kernels
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		command := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		fmt.Fprintf(&out, "%d (%s) %s, %s, waits in %q: %s\n", pid, inside, status["Name"], status["State"], waits, command)
	}
	return out.Bytes()
}

// statusFields returns the fields of /proc/PID/status. It returns an empty map if the process has exited.
func statusFields(pid int) map[string]string {
	content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	fields := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}

// network writes the addresses, routes, sockets and iptables rules in a process's network namespace to a file. If a
// command fails, the file contains the error.
func network(ctx context.Context, pid int, path string) error {
	var out bytes.Buffer
	for _, line := range [][]string{
		{"ip", "address"},
		{"ip", "route"},
		{"ss", "--all", "--numeric", "--tcp", "--udp"},
		{"iptables-save"},
	} {
		fmt.Fprintf(&out, "# %s\n", strings.Join(line, " "))
		command := exec.CommandContext(ctx, "nsenter",
			append([]string{"--target", strconv.Itoa(pid), "--net", "--"}, line...)...)
		command.Stdout, command.Stderr = &out, &out
		if err := command.Run(); err != nil {
			fmt.Fprintln(&out, "#", err)
		}
	}
	return write(path, out.Bytes())
}
