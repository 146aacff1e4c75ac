//go:build e2e

package teardown_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is what a cluster could leave on a machine, by kind. Each is a sorted
// list of lines.
type machine map[string][]string

// look takes stock of the machine.
func look(t *testing.T) machine {
	t.Helper()
	netns, err := exec.Command("ip", "netns", "list").Output()
	if err != nil {
		t.Fatalf("listing network namespaces: %v", err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return machine{
		"network namespaces": sortedLines(string(netns)),
		"mounts":             sortedLines(string(mounts)),
		"control groups":     folders(t, "/sys/fs/cgroup"),
		"files":              folders(t, "/var/lib/function-runner"),
		"kubelet's files":    folders(t, "/var/lib/kubelet"),
		"processes":          processes(t),
		"kernel settings":    kernelSettings(t),
	}
}

func sortedLines(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}

// folders lists all folders below one that may be missing.
func folders(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && !others(path) {
			found = append(found, path)
		}
		// What goes away during the walk is none of the cluster's doing.
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

// others says whether a folder is another cluster's, which may be in use.
func others(path string) bool {
	for _, parent := range []string{"/fnr-", "/function-runner/clusters/"} {
		if _, after, ok := strings.Cut(path, parent); ok && !strings.HasPrefix(after, name) {
			return true
		}
	}
	return false
}

// processes lists those that are in namespaces of their own, as everything of a
// cluster is. The rest come and go on a machine that is in use, and so do those
// in the control groups of another cluster.
func processes(t *testing.T) []string {
	t.Helper()
	own := namespaces("self")
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		pid := filepath.Base(path)
		groups, _ := os.ReadFile(filepath.Join(path, "cgroup")) // It may have ended.
		if other := namespaces(pid); other != "" && other != own && !others(string(groups)) {
			command, _ := os.ReadFile(filepath.Join(path, "cmdline"))
			found = append(found, fmt.Sprintf("%s %s %q", pid, other, command))
		}
	}
	return found
}

// namespaces names those of a process; it is empty for one that has ended.
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

// kernelSettings are those that belong to the whole machine and that a kubelet
// or a kube-proxy would change.
func kernelSettings(t *testing.T) []string {
	t.Helper()
	var settings []string
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			t.Fatal(err)
		}
		settings = append(settings, name+"="+strings.TrimSpace(string(value)))
	}
	return settings
}

// compare fails the test for whatever is there now and was not before, or the
// other way round.
func compare(t *testing.T, before, after machine) {
	t.Helper()
	for kind := range before {
		for _, line := range after[kind] {
			if !slices.Contains(before[kind], line) {
				t.Errorf("%s: left behind: %s", kind, line)
			}
		}
		for _, line := range before[kind] {
			if !slices.Contains(after[kind], line) {
				t.Errorf("%s: gone: %s", kind, line)
			}
		}
	}
}
