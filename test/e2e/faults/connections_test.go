// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// connections counts the TCP connections of a process's pod, including ones that only one side has
// closed: first those to registries, which are kept for a while for further requests, then all
// others.
func connections(t testing.TB, pid int) (toRegistries, others int) {
	t.Helper()
	const remote, state, established, closeWait = 2, 3, "01", "08"
	registries := registryPorts(t)
	for _, family := range []string{"tcp", "tcp6"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, family))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) <= state || (fields[state] != established && fields[state] != closeWait) {
				continue
			}
			if _, port, _ := strings.Cut(fields[remote], ":"); slices.Contains(registries, port) {
				toRegistries++
			} else {
				others++
			}
		}
	}
	return toRegistries, others
}

// registryPorts are the ports of the test bed's registries, as the kernel writes them.
func registryPorts(t testing.TB) []string {
	t.Helper()
	var ports []string
	for _, name := range []string{"open", "private", "secure"} {
		_, port, err := net.SplitHostPort(s.Registry(t, name).Host)
		if err != nil {
			t.Fatal(err)
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, fmt.Sprintf("%04X", number))
	}
	return ports
}
