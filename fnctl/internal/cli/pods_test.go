// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
)

// podManager returns a pod-manager with a pool that has pods and a pool that has none.
func podManager() *leasetest.Manager {
	m := leasetest.NewManager(nil)
	now := time.Now()
	m.SetPools(
		&podmanagerv1.Pool{
			Key:    &podmanagerv1.PoolKey{Reference: "example.com/fns/cold:v2", Digest: "sha256:2"},
			Limits: &podmanagerv1.Pool_Limits{MaxConcurrency: 4}, Waiting: 2, LastFailure: "no such\nimage",
		},
		&podmanagerv1.Pool{
			Key: &podmanagerv1.PoolKey{Reference: "example.com/fns/warm:v1", Digest: "sha256:1"}, Replica: "pod-manager-1",
			Limits: &podmanagerv1.Pool_Limits{MaxConcurrency: 4},
			Pods: []*podmanagerv1.Pod{
				{
					Name: "warm-v1-0", State: podmanagerv1.Pod_STATE_READY, Node: "node-a",
					CreateTime:  timestamppb.New(now.Add(-time.Hour)),
					ReclaimTime: timestamppb.New(now.Add(30*time.Minute + 30*time.Second)),
				},
				{
					Name: "warm-v1-1", State: podmanagerv1.Pod_STATE_STARTING, Phase: podmanagerv1.Phase_PHASE_PULLING,
					Reason: "Pulling image", Active: 1,
				},
			},
		},
	)
	return m
}

// screen is an output that tests can wait for.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *screen) now() (text string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.changed
}

// await returns when the screen shows all texts, or when ctx ends.
func (s *screen) await(ctx context.Context, texts ...string) {
	for {
		shown, changed := s.now()
		all := true
		for _, text := range texts {
			all = all && strings.Contains(shown, text)
		}
		if all {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// starting returns a pool with a pod in the given phase.
func starting(phase podmanagerv1.Phase, reason string) *podmanagerv1.Pool {
	return &podmanagerv1.Pool{
		Key:  &podmanagerv1.PoolKey{Reference: "example.com/fns/slow:v1", Digest: "sha256:3"},
		Pods: []*podmanagerv1.Pod{{Name: "slow-0", State: podmanagerv1.Pod_STATE_STARTING, Phase: phase, Reason: reason}},
	}
}

// waits is a status service that reports waiting evaluations.
type waits struct {
	gatewayv1connect.UnimplementedStatusServiceHandler

	mu  sync.Mutex
	all []*gatewayv1.GetStatusResponse_Waiting
}

// set replaces the waiting evaluations of slow:v1, which are reported after those of another function.
func (w *waits) set(phase, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = []*gatewayv1.GetStatusResponse_Waiting{
		{Image: "example.com/fns/other:v1", Phase: phase, Reason: "another image"},
		{Image: "example.com/fns/slow:v1", Phase: phase, Reason: reason},
	}
}

func (w *waits) GetStatus(context.Context, *gatewayv1.GetStatusRequest) (*gatewayv1.GetStatusResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &gatewayv1.GetStatusResponse{Waiting: w.all}, nil
}

func TestEvalShowsWhatItWaitsFor(t *testing.T) {
	status, stderr := &waits{}, newScreen()
	slow := func(ctx context.Context,
		req *evaluator.EvaluateFunctionRequest,
	) (*evaluator.EvaluateFunctionResponse, error) {
		for _, wait := range []struct{ phase, reason, want string }{
			{"schedule", "0/3 nodes\nfit", "waiting for a node (0/3 nodes fit)"},
			{"start", "", "starting containers"},
			{"pull", "pulling the image, 1 of 3 layers", "… pulling the image, 1 of 3 layers"},
			{"later", "a phase of a later version", "… a phase of a later version"},
		} {
			status.set(wait.phase, wait.reason)
			stderr.await(ctx, wait.want+"\n")
		}
		return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
	}
	address := fntest.Gateway{"slow:v1": slow}.Serve(t, fntest.Status(status))
	env := command.Environment{Stdin: strings.NewReader(""), Stdout: newScreen(), Stderr: stderr}
	code := cli.Run(t.Context(), env, []string{
		"eval", t.TempDir(), "--image=slow:v1", "--phases", "--address", address,
	})
	if shown, _ := stderr.now(); code != 0 || strings.Contains(shown, "another image") {
		t.Errorf("exit code %d:\n%s", code, shown)
	}
}

func TestPodsWatch(t *testing.T) {
	m, stdout, stderr := podManager(), newScreen(), newScreen()
	address := fntest.Gateway{}.Serve(t, fntest.Pods(m))
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	env := command.Environment{Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr}
	ended := make(chan int)
	go func() { ended <- cli.Run(ctx, env, []string{"pods", "--watch", "--address", address}) }()
	stdout.await(ctx, "warm-v1-1", "no such image")
	m.SetPools(starting(podmanagerv1.Phase_PHASE_CREATING, ""))
	stdout.await(ctx, "slow-0", "Gone")
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d, want 0: the interrupt is how users stop the command", code)
	}
}

// TestTimeoutSaysWhatItWaitedFor lets the deadline pass while a pod starts.
func TestTimeoutSaysWhatItWaitedFor(t *testing.T) {
	status := &waits{}
	status.set("start", "Back-off")
	address := fntest.Gateway{"slow:v1": fntest.Hang}.Serve(t, fntest.Status(status))
	const want = `function "slow:v1" did not answer in time: starting containers (Back-off)
  if what it waits for`
	// On a busy machine, a short timeout may end before fnctl knows the phase.
	for timeout := 2 * time.Second; ; timeout *= 4 {
		stderr := newScreen()
		env := command.Environment{Stdin: strings.NewReader(""), Stdout: newScreen(), Stderr: stderr}
		code := cli.Run(t.Context(), env, []string{
			"eval", t.TempDir(), "--image=slow:v1", "--phases", "--timeout=" + timeout.String(), "--address", address,
		})
		shown, _ := stderr.now()
		if code == 2 && strings.Contains(shown, want) {
			return
		}
		if code != 2 || strings.Contains(shown, "starting containers") || timeout > time.Minute {
			t.Fatalf("exit code %d, shown:\n%s\nwant\n%s", code, shown, want)
		}
	}
}
