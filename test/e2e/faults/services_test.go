//go:build e2e

package faults_test

import (
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// callers are those who wait, or evaluate, when a program is killed.
const callers = 50

// kept is how many processes of a function its pod keeps started: FNR_PREFORK's default.
const kept = 2

// startMany begins evaluations, one of each caller, and returns what becomes of them.
func (f *function) startMany(t *testing.T) <-chan error {
	t.Helper()
	ctx, done := suite.Context(t), make(chan error, callers)
	for range callers {
		go func() { done <- f.evaluate(ctx, 0) }()
	}
	return done
}

// podManagerKilled: all who wait wait on, for the same pod, which another pod-manager
// adopts, or the next one.
func podManagerKilled(t *testing.T, sys *system) {
	f, ctx := sys.sleeper(t, "manager-killed"), suite.Context(t)
	done := f.startMany(t)
	pool := f.awaitPool(ctx, t, "all wait", func(p *podmanagerv1.Pool) bool { return p.GetWaiting() == callers && len(p.GetPods()) == 1 })
	owner := sys.replica(t, pool.GetReplica())
	kill(t, find(t, owner, program(owner)))
	start := time.Now()
	for range callers {
		if err := <-done; err != nil {
			t.Errorf("one who waited: %v", err)
		}
	}
	t.Logf("all are served %v later", time.Since(start).Round(time.Millisecond))
	f.awaitPool(ctx, t, "nothing is in use", func(p *podmanagerv1.Pool) bool { return ready(p) && p.GetActive() == 0 && p.GetWaiting() == 0 })
	f.pod(t) // there is one
}

// replica is the pod of a program by its name.
func (sys *system) replica(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	for _, pod := range sys.pods {
		if pod.Name == name {
			return pod
		}
	}
	t.Fatalf("the system has no replica %q", name)
	return nil
}

// gatewayKilled: callers are told, leases end by themselves, and so do the functions.
func gatewayKilled(t *testing.T, sys *system) {
	f := sys.variant(t, "conformance/echo", "gateway-killed", func(config *v1.Config) {
		config.Entrypoint = []string{functionProgram, "sleep=1m"}
	})
	next, ctx := sys.sleeper(t, "gateway-killed"), suite.Context(t)
	done := f.startMany(t)
	f.awaitPool(ctx, t, "all evaluate", func(p *podmanagerv1.Pool) bool { return p.GetActive() == callers })
	pod := f.pod(t)
	suite.Until(ctx, t, "all functions run", func() (bool, string) { return count(t, pod, functionProgram) >= callers, "" })
	kill(t, find(t, sys.pods["gateway"], program(sys.pods["gateway"])))
	start := time.Now()
	for range callers {
		if err := <-done; status.Code(err) != codes.Unavailable {
			t.Errorf("the caller's error is %v, want that the gateway is gone", err)
		}
	}
	f.awaitPool(ctx, t, "the leases have ended", func(p *podmanagerv1.Pool) bool { return p.GetActive() == 0 })
	t.Logf("the leases have ended %v later", time.Since(start).Round(time.Millisecond))
	suite.Until(ctx, t, "the functions have ended", func() (bool, string) { return count(t, pod, functionProgram) <= kept, "" })
	t.Logf("the functions have ended %v later", time.Since(start).Round(time.Millisecond))
	next.succeeds(t, "by the next gateway")
}
