//go:build e2e

package teardown_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

var (
	program = flag.String("cluster", "", "program of test/cluster")
	root    = flag.String("root", "", "root of the repository")
)

// name is a cluster that nobody else uses.
const name = "trace"

func TestDownLeavesNoTrace(t *testing.T) {
	before := look(t)
	cluster(t, "up")
	t.Cleanup(func() { cluster(t, "down") })
	if during := look(t); len(during["processes"]) == len(before["processes"]) {
		t.Fatal("the cluster's processes are not seen: the test would prove nothing")
	}
	cluster(t, "down")
	compare(t, before, look(t))
}

func TestDownCleansUpAfterAKill(t *testing.T) {
	before := look(t)
	cluster(t, "up")
	t.Cleanup(func() { cluster(t, "down") })
	killAll(t)
	if state := state(t); state != "dead" {
		t.Fatalf("after all its processes were killed the cluster is %s", state)
	}
	cluster(t, "down")
	compare(t, before, look(t))
}

// TestUpWorksAfterAKill also runs tests on the cluster then. Others may run them on a
// cluster of another name meanwhile, as `make test` does.
func TestUpWorksAfterAKill(t *testing.T) {
	cluster(t, "up")
	t.Cleanup(func() { cluster(t, "down") })
	killAll(t)
	cluster(t, "up")
	if state := state(t); state != "ready" {
		t.Errorf("the cluster is %s, want ready", state)
	}
	inside := fmt.Sprintf("%s --name %s --root %s exec --", *program, name, *root)
	tests := exec.Command("go", "test", "-vet=off", "-count=1", "-tags=e2e", "-exec", inside, "./e2e/cluster")
	tests.Dir = filepath.Join(*root, "test")
	if output, err := tests.CombinedOutput(); err != nil {
		t.Errorf("the tests on the cluster: %v\n%s", err, output)
	}
}

func cluster(t *testing.T, args ...string) []byte {
	t.Helper()
	command := exec.Command(*program, append([]string{"--name", name, "--root", *root}, args...)...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("cluster %s: %v", args[0], err)
	}
	return output
}

func state(t *testing.T) string {
	t.Helper()
	var status struct {
		State string `json:"state"`
	}
	if err := json.Unmarshal(cluster(t, "status", "-o", "json"), &status); err != nil {
		t.Fatal(err)
	}
	return status.State
}

// killAll kills every process in the cluster's control groups, in the order in
// which they are found, until there is none.
func killAll(t *testing.T) {
	t.Helper()
	for found := true; found; {
		found = false
		for _, group := range folders(t, "/sys/fs/cgroup") {
			if !strings.Contains(group, "/fnr-"+name) {
				continue
			}
			content, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			for _, line := range strings.Fields(string(content)) {
				pid, err := strconv.Atoi(line)
				if err != nil || pid == 0 {
					t.Fatalf("unexpected process %q in %s", line, group)
				}
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL) // It may just have ended.
			}
		}
	}
}
