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
		"control groups":     groups(t),
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
		if err == nil && entry.IsDir() && !others(path) && !shared(path) {
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

// groups lists the cluster's control groups, and all others that have no process, as
// those would be that it left behind under another name. The rest belong to somebody, and
// come and go with what he runs.
func groups(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(folders(t, "/sys/fs/cgroup"), func(group string) bool {
		processes, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		return !own(group) && (len(processes) > 0 || errors.Is(err, fs.ErrNotExist) && gone(group))
	})
}

// gone says whether a folder is not there any more.
func gone(folder string) bool {
	_, err := os.Stat(folder)
	return errors.Is(err, fs.ErrNotExist)
}

// groupPrefix is what the names of clusters' control groups begin with.
const groupPrefix = "/fnr-"

// others says whether a folder is another cluster's, which may be in use.
func others(path string) bool {
	for _, parent := range []string{groupPrefix, "/function-runner/clusters/"} {
		if _, after, ok := strings.Cut(path, parent); ok && !named(after) {
			return true
		}
	}
	return false
}

// own says whether a control group is the cluster's, or below it.
func own(path string) bool {
	_, after, ok := strings.Cut(path, groupPrefix)
	return ok && named(after)
}

// named says whether a path begins with the cluster's name, as a whole.
func named(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.TrimSpace(first) == name
}

// shared says whether a folder is there for what is in it, of any cluster: the last one
// to go removes it.
func shared(path string) bool {
	if !slices.Contains([]string{"/var/lib/function-runner", "/var/lib/function-runner/clusters"}, path) {
		return false
	}
	entries, _ := os.ReadDir(path) // It may have gone.
	return len(entries) > 0
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
		for _, line := range added(before, after, kind) {
			t.Errorf("%s: left behind: %s", kind, line)
		}
		for _, line := range added(after, before, kind) {
			t.Errorf("%s: gone: %s", kind, line)
		}
	}
}

// added are the lines of a kind that are in the second and not in the first.
func added(first, second machine, kind string) []string {
	return slices.DeleteFunc(slices.Clone(second[kind]), func(line string) bool { return slices.Contains(first[kind], line) })
}
