// SPDX-License-Identifier: Apache-2.0

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
	"time"
)

var (
	program = flag.String("cluster", "", "program of test/cluster")
	root    = flag.String("root", "", "root of the repository")
)

// name is a cluster for this test only, and clusterDir has its files.
const (
	name       = "trace"
	clusterDir = "/var/lib/function-runner/clusters/" + name
)

// TestDownAfterAKill takes down a cluster whose processes have all ended.
func TestDownAfterAKill(t *testing.T) {
	before, beside := afresh(t)
	cluster(t, "up")
	t.Cleanup(func() { cluster(t, "down") })
	during := look(t)
	for _, kind := range []string{"processes", "control groups", "files"} {
		if len(added(before, during, kind)) == 0 {
			t.Errorf("%s: none of the cluster's is seen: the test would prove nothing", kind)
		}
	}
	killAll(t)
	if state := state(t); state != "dead" {
		t.Fatalf("after all its processes were killed the cluster is %s", state)
	}
	cluster(t, "down")
	compare(t, before, beside)
}

// TestUpAfterAKill brings a cluster up after another one was killed while it started, with a
// truncated state file. It works as any other: tests pass on it, while other tests may run on a
// cluster of another name, as in `make test`. Then it is taken down.
func TestUpAfterAKill(t *testing.T) {
	before, beside := afresh(t)
	t.Cleanup(func() { cluster(t, "down") })
	kill := startUp(t)
	lookAtEvidence(t)
	kill()
	killAll(t)
	if err := os.WriteFile(filepath.Join(clusterDir, "state.json"), []byte(`{"init": {"pid": 1`), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster(t, "up")
	if state := state(t); state != "ready" {
		t.Errorf("the cluster is %s, want ready", state)
	}
	inside := fmt.Sprintf("%s --name %s --root %s exec --", *program, name, *root)
	// The skipped tests need images that only a further command would push.
	tests := exec.Command("go", "test", "-vet=off", "-count=1", "-tags=e2e", "-skip=Wrapper|Resolver|Program",
		"-exec", inside, "./e2e/cluster", "./e2e/bed")
	tests.Dir = filepath.Join(*root, "test")
	if output, err := tests.CombinedOutput(); err != nil {
		t.Errorf("the tests on the cluster: %v\n%s", err, output)
	}
	cluster(t, "down")
	compare(t, before, beside)
}

// afresh records the state of the machine with a bystander, and without leftovers of an interrupted run.
func afresh(t *testing.T) (machine, bystander) {
	t.Helper()
	cluster(t, "down")
	beside := newBystander(t)
	return look(t), beside
}

// startUp begins to bring the cluster up, and returns when its container runtime runs. Then up can
// be killed.
func startUp(t *testing.T) (kill func()) {
	t.Helper()
	up := command("up")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	for {
		if _, err := os.Stat(filepath.Join(clusterDir, "logs", "containerd.log")); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("up ended before the container runtime ran: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() {
		if err := up.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
	}
}

// lookAtEvidence keeps the evidence of a half started cluster.
func lookAtEvidence(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	cluster(t, "evidence", dir)
	for file, want := range map[string]string{
		"logs/containerd.log": "", "components.json": "kube-apiserver", "cgroups.txt": "fnr-" + name,
		"processes.txt": "supervise", "mounts.txt": " /run ", "network.txt": "172.30.0.1",
	} {
		content, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s: %v, want something about %q:\n%s", file, err, want, content)
		}
	}
}

func command(args ...string) *exec.Cmd {
	command := exec.Command(*program, append([]string{"--name", name, "--root", *root}, args...)...)
	command.Stderr = os.Stderr
	return command
}

func cluster(t *testing.T, args ...string) []byte {
	t.Helper()
	output, err := command(args...).Output()
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
	output, err := command("status", "-o", "json").Output()
	if decoded := json.Unmarshal(output, &status); decoded != nil {
		t.Fatalf("cluster status: %v, %v", err, decoded)
	}
	if ready := status.State == "ready"; ready != (err == nil) {
		t.Errorf("a cluster that is %s has the exit status %v", status.State, err)
	}
	return status.State
}

// killAll kills every process in the cluster's control groups, in the order in which they are
// found, until there is none.
func killAll(t *testing.T) {
	t.Helper()
	for found := true; found; {
		found = false
		for _, group := range directories(t, controlGroups) {
			if !own(group) {
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
