// SPDX-License-Identifier: Apache-2.0

//go:build bubblewrap

package localrunner_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner/localrunnertest"
)

// BenchmarkFirst compares the first evaluation of an image in the store, as fnctl --local does it, with the bare
// process and with bubblewrap alone. They take turns, with a pause in which what the last one left behind ends.
func BenchmarkFirst(b *testing.B) {
	setUp(b)
	b.Setenv("FNR_SANDBOX", "bubblewrap")
	b.Setenv("FNR_EXEC_PREFORK", "0") // each is a first one
	registry := localrunnertest.Open(b)
	registry.Push(b, "fn/echo:v1", "echo")
	b.Setenv("FNR_INSECURE_REGISTRIES", registry.Host)
	request := &evaluator.EvaluateFunctionRequest{
		Image: registry.Host + "/fn/echo:v1", ResourceList: []byte("kind: ResourceList\n"),
	}
	client, stop := start(b, false)
	defer stop()
	dir := localrunnertest.SharedDir(b)
	testfn.Install(b, dir, "echo")
	function := filepath.Join(dir, "echo")
	if err := os.Chmod(function, 0o755); err != nil { // another user runs it in a sandbox
		b.Fatal(err)
	}
	evaluate := [3]func() ([]byte, error){
		func() ([]byte, error) { return run(b.Context(), request.ResourceList, function) },
		func() ([]byte, error) { return run(b.Context(), request.ResourceList, launched(function)...) },
		func() ([]byte, error) {
			response, err := client.EvaluateFunction(b.Context(), request)
			return response.GetResourceList(), err
		},
	}
	var took [len(evaluate)][]time.Duration
	for first := true; b.Loop(); first = false {
		for _, i := range rand.Perm(len(evaluate)) {
			<-time.After(20 * time.Millisecond)
			begin := time.Now()
			output, err := evaluate[i]()
			if err != nil {
				b.Fatal(err)
			}
			if first && !bytes.Equal(output, request.ResourceList) {
				b.Fatalf("way %d returns %q", i, output)
			}
			if !first {
				took[i] = append(took[i], time.Since(begin))
			}
		}
	}
	var p50 [len(evaluate)]float64
	for i, all := range took {
		slices.Sort(all)
		p50[i] = all[len(all)/2].Seconds() * 1000
	}
	b.ReportMetric(p50[0], "ms-bare")
	b.ReportMetric(p50[1], "ms-bubblewrap")
	b.ReportMetric(p50[2], "ms-local")
	launches := (p50[2] - p50[0]) / (p50[1] - p50[0])
	b.ReportMetric(launches, "launches")
	b.ReportMetric(0, "ns/op")
	if launches > maxLaunches {
		b.Errorf("p50 %.2f ms: the bare process and %.2f times what bubblewrap takes, want at most %.1f",
			p50[2], launches, maxLaunches)
	}
}

// maxLaunches is what a first evaluation may take beside the bare process, as a multiple of what bubblewrap takes.
const maxLaunches = 1.2

// run runs a command with a list as its input.
func run(ctx context.Context, list []byte, command ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(list)
	if command[0] == launcher && os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	return cmd.Output()
}

const launcher = "bwrap"

// launched returns how bubblewrap runs a program with the namespaces and file systems of our sandboxes.
func launched(program string) []string {
	return []string{
		launcher, "--unshare-all", "--uid", "65532", "--gid", "65532",
		"--ro-bind", "/", "/", "--ro-bind", filepath.Dir(program), "/mnt", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/dev/shm", "--remount-ro", "/dev", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--chdir", "/", "--",
		filepath.Join("/mnt", filepath.Base(program)),
	}
}
