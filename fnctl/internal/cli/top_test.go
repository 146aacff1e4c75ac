// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
)

// gatewayStatus is the status of a gateway that has evaluated each trace that it is asked for.
type gatewayStatus struct {
	gatewayv1connect.UnimplementedStatusServiceHandler

	pods        lease.Manager // nil for none
	traceparent string        // of the last evaluation
}

func (*gatewayStatus) GetStatus(context.Context, *gatewayv1.GetStatusRequest) (*gatewayv1.GetStatusResponse, error) {
	return &gatewayv1.GetStatusResponse{
		Replica: "gateway-0", Version: "v9", StartTime: timestamppb.Now(),
		Functions: []*gatewayv1.GetStatusResponse_Function{
			{Image: "echo:v1", Rate: 2.5, Median: durationpb.New(time.Second)},
		},
	}, nil
}

func (*gatewayStatus) ListEvaluations(
	_ context.Context, req *gatewayv1.ListEvaluationsRequest,
) (*gatewayv1.ListEvaluationsResponse, error) {
	e := &gatewayv1.Evaluation{
		TraceId: req.GetTraceId(), Image: "echo:v1", Evaluator: "pod", Pod: "echo-0", ColdStart: true, Attempts: 1,
		Phases: []*gatewayv1.EvaluationPhase{{Name: "pull", Attempt: 1, Reason: "Pulling\nimage"}, {Name: "run", Attempt: 1}},
	}
	if req.GetFailed() {
		e.Code = "unavailable"
		e.Reason = "no pod-manager answers"
	}
	return &gatewayv1.ListEvaluationsResponse{Evaluations: []*gatewayv1.Evaluation{e}}, nil
}

// echo records the trace of its caller.
func (s *gatewayStatus) echo(
	ctx context.Context, req *evaluator.EvaluateFunctionRequest,
) (*evaluator.EvaluateFunctionResponse, error) {
	if call, ok := connect.CallInfoForHandlerContext(ctx); ok {
		s.traceparent = call.RequestHeader().Get("Traceparent")
	}
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
}

// run runs a command at a gateway with a status.
func (s *gatewayStatus) run(
	ctx context.Context, t *testing.T, stdout *screen, args ...string,
) (code int, stderr string) {
	t.Helper()
	address := fntest.Gateway{"echo:v1": s.echo}.Serve(t, fntest.Status(s), fntest.Pods(s.pods))
	problems := newScreen()
	env := command.Environment{Stdin: strings.NewReader(""), Stdout: stdout, Stderr: problems}
	code = cli.Run(ctx, env, append(args, "--address", address))
	stderr, _ = problems.now()
	return code, stderr
}

func TestTopOnce(t *testing.T) {
	stdout := newScreen()
	if code, stderr := new(gatewayStatus).run(t.Context(), t, stdout, "top", "--once"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	shown, _ := stdout.now()
	for _, want := range []string{
		"gateway gateway-0, version v9", "echo:v1", "2.50", "unavailable: no pod-manager answers",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("shown\n%s\nlacks %q", shown, want)
		}
	}
	if strings.ContainsRune(shown, '\x1b') {
		t.Errorf("what is no terminal got escape sequences: %q", shown)
	}
}

func TestTopAsJSON(t *testing.T) {
	stdout := newScreen()
	if code, stderr := new(gatewayStatus).run(t.Context(), t, stdout, "top", "--once", "-o", "json"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	shown, _ := stdout.now()
	var got struct {
		Status   struct{ Functions []struct{ Rate float64 } }
		Failures struct{ Evaluations []struct{ Reason string } }
	}
	if err := json.Unmarshal([]byte(shown), &got); err != nil {
		t.Fatalf("%v: %s", err, shown)
	}
	if got.Status.Functions[0].Rate != 2.5 || got.Failures.Evaluations[0].Reason == "" {
		t.Errorf("shown %s", shown)
	}
}

// unreachable is a pod-manager that does not answer.
type unreachable struct{ *leasetest.Manager }

func (unreachable) ListPools(
	context.Context, *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	return nil, connect.NewError(connect.CodeUnavailable, errors.New("no pod-manager\nanswers"))
}

// TestTopWithoutPodManagers shows what the gateway itself knows.
func TestTopWithoutPodManagers(t *testing.T) {
	for _, args := range [][]string{{"top", "--once"}, {"top", "--once", "-o", "json"}} {
		stdout := newScreen()
		s := &gatewayStatus{pods: unreachable{leasetest.NewManager(nil)}}
		if code, stderr := s.run(t.Context(), t, stdout, args...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", args, code, stderr)
		}
		shown, _ := stdout.now()
		for _, want := range []string{
			"echo:v1", "no pod-manager answers", "the gateway cannot reach the pod-manager (no pod-manager answers)",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s shows\n%s\nlacks %q", args, shown, want)
			}
		}
	}
}

func TestTopRefreshes(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	stdout := newScreen()
	go func() {
		defer stop()
		for range 2 {
			_, changed := stdout.now()
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	if code, stderr := new(gatewayStatus).run(ctx, t, stdout, "top", "--interval=100ms"); code != 0 {
		t.Errorf("exit code %d, want 0: the interrupt is how users stop the command: %s", code, stderr)
	}
	if shown, _ := stdout.now(); strings.Count(shown, "gateway-0") < 2 {
		t.Errorf("shown\n%s\nwant two refreshes", shown)
	}
}

func TestTopOfAnEarlierGateway(t *testing.T) {
	address := fntest.Gateway{}.Serve(t)
	stderr := newScreen()
	env := command.Environment{Stdin: strings.NewReader(""), Stdout: newScreen(), Stderr: stderr}
	code := cli.Run(t.Context(), env, []string{"top", "--address", address})
	if shown, _ := stderr.now(); code != 2 || !strings.Contains(shown, "its version is older than fnctl's") {
		t.Errorf("exit code %d: %s", code, shown)
	}
}

func TestEvalTrace(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	s := &gatewayStatus{}
	code, shown := s.run(t.Context(), t, newScreen(), "eval", dir, "--image=echo:v1", "--trace")
	parts := strings.Split(s.traceparent, "-")
	if code != 0 || len(parts) != 4 || !strings.Contains(shown, "Trace "+parts[1]) {
		t.Fatalf("exit code %d, traceparent %q, shown\n%s", code, s.traceparent, shown)
	}
	for _, want := range []string{"pod, echo-0, cold start", "├ pull", "Pulling image", "└ run"} {
		if !strings.Contains(shown, want) {
			t.Errorf("shown\n%s\nlacks %q", shown, want)
		}
	}
	before := s.traceparent
	code, shown = s.run(t.Context(), t, newScreen(), "eval", dir, "--image=echo:v1")
	if code != 0 || strings.Contains(shown, "Trace") || s.traceparent == before {
		t.Errorf("without --trace: exit code %d, traceparent %q, shown\n%s", code, s.traceparent, shown)
	}
}

// TestTraceOfConcurrentFunctions renders two packages whose functions return once both run.
func TestTraceOfConcurrentFunctions(t *testing.T) {
	dir := t.TempDir()
	for file, content := range map[string]string{
		"Kptfile": "", "a/Kptfile": "pipeline: {mutators: [{image: pair:v1}]}\n",
		"b/Kptfile": "pipeline: {mutators: [{image: pair:v1}]}\n",
	} {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		content = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: p}\n" + content
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var running sync.WaitGroup
	running.Add(2)
	address := fntest.Gateway{"pair:v1": func(
		_ context.Context, req *evaluator.EvaluateFunctionRequest,
	) (*evaluator.EvaluateFunctionResponse, error) {
		running.Done()
		running.Wait()
		return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
	}}.Serve(t, fntest.Status(&gatewayStatus{}))
	stderr := newScreen()
	env := command.Environment{Stdin: strings.NewReader(""), Stdout: newScreen(), Stderr: stderr}
	code := cli.Run(t.Context(), env, []string{"render", dir, "--trace", "--jobs=2", "--address", address})
	shown, _ := stderr.now()
	if code != 0 || strings.Count(shown, "Trace ") != 2 {
		t.Errorf("exit code %d, want two traces:\n%s", code, shown)
	}
}
