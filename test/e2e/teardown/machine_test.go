// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package teardown_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// machine is what a cluster could leave on a machine, by kind. Each is a sorted list of lines.
type machine map[string][]string

// look records the state of the machine.
func look(t *testing.T) machine {
	t.Helper()
	netns, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		t.Fatalf("list network namespaces: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return machine{
		"network namespaces": sortedLines(string(netns)),
		"mounts":             sortedLines(string(mounts)),
		"control groups":     groups(t),
		"files":              directories(t, "/var/lib/function-runner"),
		"kubelet's files":    directories(t, "/var/lib/kubelet"),
		"processes":          processes(t),
		"kernel settings":    kernelSettings(t),
	}
}

func sortedLines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}

// directories lists all directories below one that may be missing.
func directories(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && !others(path) && !shared(path) {
			found = append(found, path)
		}
		// What is removed during the walk does not belong to the cluster.
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// groups lists the cluster's control groups, and all others without a process: such a group may
// have been left behind under another name. Groups with processes belong to other users of the
// machine, and come and go.
func groups(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(directories(t, controlGroups), func(group string) bool {
		processes, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		return !own(group) && (len(processes) > 0 || (errors.Is(err, fs.ErrNotExist) && gone(group)))
	})
}

// gone reports whether a directory does not exist any more.
func gone(dir string) bool {
	_, err := os.Stat(dir)
	return errors.Is(err, fs.ErrNotExist)
}

// controlGroups is the directory with all control groups.
const controlGroups = "/sys/fs/cgroup"

// groupPrefix is the prefix of the names of clusters' control groups.
const groupPrefix = "/fnr-"

// others reports whether a directory is another cluster's, which may be in use.
func others(path string) bool {
	for _, parent := range []string{groupPrefix, "/function-runner/clusters/"} {
		if _, after, ok := strings.Cut(path, parent); ok && !named(after) {
			return true
		}
	}
	return false
}

// own reports whether a control group is the cluster's, or below it.
func own(path string) bool {
	_, after, ok := strings.Cut(path, groupPrefix)
	return ok && named(after)
}

// named reports whether a path begins with the cluster's name, as a whole.
func named(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.TrimSpace(first) == name
}

// shared reports whether a directory exists for the entries of any cluster: the last cluster to end
// removes it.
func shared(path string) bool {
	if !slices.Contains([]string{"/var/lib/function-runner", "/var/lib/function-runner/clusters"}, path) {
		return false
	}
	entries, _ := os.ReadDir(path) // It may be removed.
	return len(entries) > 0
}

// kernelSettings belong to the whole machine; a kubelet or a kube-proxy would change them.
func kernelSettings(t *testing.T) []string {
	t.Helper()
	var settings []string
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"net/ipv4/ip_forward",
	} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			t.Fatal(err)
		}
		settings = append(settings, name+"="+strings.TrimSpace(string(value)))
	}
	return settings
}

// compare fails the test for everything that was added or removed. Processes and groups of others come and go: a new
// one must stay for minutes to fail the test, and of the others only the bystander's must still be there.
func compare(t *testing.T, before machine, beside bystander) {
	t.Helper()
	after := look(t)
	for kind := range before {
		left := added(before, after, kind)
		for end := time.Now().Add(5 * time.Minute); slices.ContainsFunc(left, passing) && time.Now().Before(end); {
			<-time.After(time.Second)
			now := look(t)[kind]
			left = slices.DeleteFunc(left,
				func(line string) bool { return passing(line) && !slices.Contains(now, line) })
		}
		for _, line := range left {
			t.Errorf("%s: left behind: %s", kind, line)
		}
		for _, line := range added(after, before, kind) {
			if !passing(line) || beside.has(line) {
				t.Errorf("%s: gone: %s", kind, line)
			}
		}
	}
}

// passing reports whether a line may be of others, as it is a process or not one of the cluster's control groups. A
// process that a cluster has left is in one of its groups, which then is left, too.
func passing(line string) bool {
	group := strings.HasPrefix(line, controlGroups)
	return (group && !own(line)) || strings.Contains(line, " pid:[")
}

// added returns the lines of a kind that are in the second and not in the first.
func added(first, second machine, kind string) []string {
	return slices.DeleteFunc(slices.Clone(second[kind]),
		func(line string) bool { return slices.Contains(first[kind], line) })
}
