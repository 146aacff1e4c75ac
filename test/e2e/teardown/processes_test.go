// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package teardown_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// bystander is a process in a network namespace and an empty control group, as other users of the machine have.
type bystander struct {
	pid   int
	group string
}

// newBystander starts a bystander, which ends with the test.
func newBystander(t *testing.T) bystander {
	t.Helper()
	hierarchy := filepath.Join(controlGroups, "pids")
	if _, err := os.Stat(hierarchy); err != nil {
		hierarchy = controlGroups // version 2 has only one
	}
	group, err := os.MkdirTemp(hierarchy, "bystander-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(group) }) // the test has said so if it is gone
	command := exec.Command("cat")             // it ends when its input does
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait() // the test has said so if it was killed
	})
	return bystander{command.Process.Pid, group}
}

// has reports whether a line is of the bystander.
func (b bystander) has(line string) bool {
	return line == b.group || strings.HasPrefix(line, fmt.Sprintf("%d ", b.pid))
}

// processes lists the processes that are in the cluster's control groups, or in separate
// namespaces, as everything of a cluster is. The others come and go on a machine in use, and so do
// those of another cluster.
func processes(t *testing.T) []string {
	t.Helper()
	here := namespaces("self")
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := othersNetworks(paths)
	var found []string
	for _, path := range paths {
		pid := filepath.Base(path)
		names := namespaces(pid)
		if names == "" {
			continue // It has ended.
		}
		if inGroup(path, own) || (names != here && !inGroup(path, others) && !elsewhere[network(path)]) {
			command, _ := os.ReadFile(filepath.Join(path, "cmdline"))
			found = append(found, fmt.Sprintf("%s %s %q", pid, names, command))
		}
	}
	return found
}

// othersNetworks returns the network namespaces of processes in other clusters' control groups.
// Commands that users run in those clusters have the namespace, and no such group.
func othersNetworks(paths []string) map[string]bool {
	networks := make(map[string]bool)
	for _, path := range paths {
		if inGroup(path, others) {
			networks[network(path)] = true
		}
	}
	delete(networks, "") // of what has ended
	delete(networks, network("/proc/self"))
	return networks
}

// inGroup reports whether a process is in a control group of that kind.
func inGroup(path string, kind func(group string) bool) bool {
	groups, _ := os.ReadFile(filepath.Join(path, "cgroup")) // It may have ended.
	return slices.ContainsFunc(strings.Split(string(groups), "\n"), kind)
}

// network names the network namespace of a process.
func network(path string) string {
	name, _ := os.Readlink(filepath.Join(path, "ns", "net"))
	return name
}

// namespaces names the namespaces of a process; it is empty for one that has ended.
func namespaces(pid string) string {
	var names []string
	for _, kind := range []string{"pid", "mnt", "net"} {
		name, err := os.Readlink(filepath.Join("/proc", pid, "ns", kind))
		if err != nil {
			return ""
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}
