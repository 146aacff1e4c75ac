// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
)

// echoed is a gateway whose function returns its input, and fails after so many evaluations unless that is zero.
func echoed(t *testing.T, failAfter int64) (address string, last *atomic.Pointer[evaluator.EvaluateFunctionRequest]) {
	t.Helper()
	var calls atomic.Int64
	last = new(atomic.Pointer[evaluator.EvaluateFunctionRequest])
	gateway := fntest.Gateway{"echo": func(_ context.Context, req *evaluator.EvaluateFunctionRequest,
	) (*evaluator.EvaluateFunctionResponse, error) {
		last.Store(req)
		if n := calls.Add(1); failAfter > 0 && n > failAfter {
			return nil, connect.NewError(connect.CodeResourceExhausted, errors.New("the queue is full"))
		}
		return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
	}}
	return gateway.Serve(t), last
}

// runBench runs fnctl bench for a short time.
func runBench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	short := []string{"bench", "-i", "echo", "--duration", "60ms", "--turn", "10ms", "--warm-up", "1ms"}
	short = append(short, "--settle", "0s")
	code = cli.Run(t.Context(), cli.Environment{Stdout: &out, Stderr: &errs}, append(short, args...))
	return code, out.String(), errs.String()
}

func TestBenchComparesTargets(t *testing.T) {
	address, last := echoed(t, 0)
	svg := filepath.Join(t.TempDir(), "latency.svg")
	code, out, errs := runBench(t, "--target", "bare=exec:cat", "--target", "gateway="+address, "--items", "1,3",
		"--callers", "2", "--rate", "500", "--svg", svg, "-o", "json", "--", "namespace=shop")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var report struct {
		Machine struct{ Processors int }
		Levels  []struct {
			Input, Different any
			Results          []struct {
				Target      string
				Evaluations int
				P50Ratio    *struct{ Value, Low, High float64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Levels) != 4 || report.Machine.Processors == 0 {
		t.Fatalf("two lists with two loads: %s", out)
	}
	for _, level := range report.Levels {
		if level.Different != nil || level.Results[0].Target != "bare" || level.Results[1].P50Ratio == nil {
			t.Errorf("got %+v", level)
		}
	}
	if list := string(last.Load().GetResourceList()); strings.Count(list, "kind: Deployment") != 3 ||
		!strings.Contains(list, "\n    namespace: shop\n") {
		t.Errorf("the last list:\n%s", list)
	}
	if picture, err := os.ReadFile(svg); err != nil || !strings.Contains(string(picture), "<svg") {
		t.Errorf("picture: %v\n%s", err, picture)
	}
}

func TestBenchPrintsATable(t *testing.T) {
	address, last := echoed(t, 0)
	file := filepath.Join(t.TempDir(), "list.yaml")
	if err := os.WriteFile(file, []byte("kind: ResourceList\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runBench(t, "--address", address, file)
	if code != 0 || !strings.Contains(out, "| input ") || !strings.Contains(out, "Measured on ") {
		t.Errorf("exit code %d: %s\n%s", code, out, errs)
	}
	if got := string(last.Load().GetResourceList()); got != "kind: ResourceList\n" {
		t.Errorf("the gateway got %q", got)
	}
}

// TestBenchComparesThroughput has a loop in a shell, and bursts, which need another target.
func TestBenchComparesThroughput(t *testing.T) {
	address, _ := echoed(t, 0)
	gateway := "gateway=" + address
	for load, args := range map[string][]string{
		"3 callers":  {"--callers", "3", "--target", "shells=shell:cat | cat", "--target", gateway},
		"burst of 5": {"--burst", "5", "--target", "bare=exec:cat", "--target", gateway},
	} {
		code, out, errs := runBench(t, append(args, "--items", "1", "--settle", "1ms")...)
		printed := strings.Contains(out, "| "+load+" ") && strings.Contains(out, "per second over ")
		if code != 0 || !printed || strings.Contains(errs, "another output") {
			t.Errorf("%s: exit code %d: %s\n%s", load, code, out, errs)
		}
	}
}

func TestBenchReportsFailures(t *testing.T) {
	address, _ := echoed(t, 20)
	code, out, errs := runBench(t, "--address", address, "--items", "1", "--rate", "5000", "--duration", "1s",
		"--turn", "100ms")
	if code != 2 || !strings.Contains(errs, "evaluations failed") || !strings.Contains(errs, "the queue is full") {
		t.Errorf("exit code %d: %s\n%s", code, out, errs)
	}
}

func TestBenchChecksItsFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--image", ""},
		{"--target", "a=x:1", "--target", "a=y:1"},
		{"--target", "x:1"},
		{"--target", "a=x:1", "--address", "y:1"},
		{"--rate", "0"},
		{"--rate", "-1"},
		{"--callers", "0"},
		{"--burst", "-1"},
		{"--settle", "-1s"},
		{"--target", "a=shell:cat", "--rate", "5"},
		{"--target", "a=shell:cat", "--burst", "5"},
		{"--turn", "0s"},
		{"--max-in-flight", "0"},
		{"--output", "yaml"},
		{"--items", "-1"},
		{"list.yaml", "--", "a=b"},
		{"a", "b"},
	} {
		if code, _, errs := runBench(t, args...); code != 2 || !strings.Contains(errs, "(see fnctl bench --help)") {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
	}
}

func TestBenchRejects(t *testing.T) {
	address, _ := echoed(t, 0)
	tests := map[string][]string{
		"takes numbers above zero":      {"--address", address, "--rate", "NaN"},
		"at most 1000000 for --rate":    {"--address", address, "--rate", "+Inf"},
		"takes --target or --address":   {"--address", address, "--target", "gateway=" + address},
		"takes NAME=ADDRESS, NAME=exec": {"--target", address},
	}
	for want, args := range tests {
		if code, _, errs := runBench(t, args...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit code %d, want 2, and %q in: %s", args, code, want, errs)
		}
	}
}
