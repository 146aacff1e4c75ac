// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// callers is the number of requests that wait, or are evaluated, when a program is killed.
const callers = 50

// functionProgram is the command line of functions.
const functionProgram = "/usr/local/bin/function"

// startMany begins evaluations, one of each caller, and returns their results.
func (f *function) startMany(t *testing.T) <-chan error {
	t.Helper()
	ctx, done := suite.Context(t), make(chan error, callers)
	for range callers {
		go func() { done <- f.evaluateWithin(ctx, longDeadline, 0) }()
	}
	return done
}

// podManagerKilled: all waiting requests keep waiting, for the same pod, which another pod-manager
// adopts, or the next one.
func podManagerKilled(t *testing.T, sys *system) {
	f, ctx := sys.sleeper(t, "manager-killed"), suite.Context(t)
	done := f.startMany(t)
	pool := f.awaitPool(ctx, t, "all wait", allWait)
	f.awaitAtGate(t)
	owner := sys.replica(t, pool.GetReplica())
	suite.Kill(t, suite.FindProcess(t, owner, suite.ProgramOf(owner)))
	sys.openGate(t)
	start := time.Now()
	for range callers {
		if err := <-done; err != nil {
			t.Errorf("a waiting request: %v", err)
		}
	}
	t.Logf("all are served %v later", time.Since(start).Round(time.Millisecond))
	f.awaitPool(ctx, t, "nothing is in use",
		func(p *podmanagerv1.Pool) bool { return ready(p) && p.GetActive() == 0 && p.GetWaiting() == 0 })
	f.pod(t) // it exists
}

// functionRunnerKilled: waiting and running requests get an error. The next process has their pods,
// and none of their leases is left.
func functionRunnerKilled(t *testing.T, sys *system) {
	busy, cold, ctx := sys.hourLong(t), sys.sleeper(t, "runner-killed"), suite.Context(t)
	evaluating := busy.startMany(t)
	pod := busy.awaitRunning(ctx, t)
	waiting := cold.startMany(t)
	cold.awaitPool(ctx, t, "all wait", allWait)
	cold.awaitAtGate(t)
	runner := sys.pods["function-runner"]
	suite.Kill(t, suite.FindProcess(t, runner, suite.ProgramOf(runner)))
	for range callers {
		failsAsGone(t, <-evaluating)
		failsAsGone(t, <-waiting)
	}
	sys.openGate(t)
	cold.succeeds(t, "by the next function-runner")
	cold.pod(t) // it exists
	busy.awaitEnded(ctx, t, pod)
	if after := busy.pod(t); after.UID != pod.UID {
		t.Error("the pod on which all evaluated was replaced")
	}
}

// failsAsGone checks that a caller's error has the code for a server that is gone, and is not about a pod without a
// node.
func failsAsGone(t *testing.T, err error) {
	t.Helper()
	if status.Code(err) != codes.Unavailable || strings.Contains(err.Error(), "Unschedulable") {
		t.Errorf("the caller's error is %v, want that the server is gone", err)
	}
}

// awaitAtGate waits until the function's pod exists, and checks that it has no node before openGate.
func (f *function) awaitAtGate(t *testing.T) {
	t.Helper()
	if node := f.pod(t).Spec.NodeName; node != "" {
		t.Errorf("the pod is on node %s before the gate is open", node)
	}
}

// openGate gives the node the resource that some functions' pods need (see pod-cache-config.yaml), until the test ends.
// Before that, such a pod is not scheduled, so that its callers wait for up to FNR_UNSCHEDULED_TIMEOUT.
func (sys *system) openGate(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(suite.Context(t))
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set := func(amount string) {
		resource := fmt.Sprintf(`{"%s/gate":%s}`, sys.functions, amount)
		patch := fmt.Appendf(nil, `{"status":{"capacity":%s,"allocatable":%[1]s}}`, resource)
		for _, node := range nodes.Items {
			_, err := s.Client.CoreV1().Nodes().Patch(
				ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
			if err != nil {
				t.Error(err)
			}
		}
	}
	set(`"1"`)
	t.Cleanup(func() { set("null") })
}

// allWait reports whether all callers wait for one pod.
func allWait(p *podmanagerv1.Pool) bool { return p.GetWaiting() == callers && len(p.GetPods()) == 1 }

// hourLong returns a function that takes an hour, without spare processes: each of its processes evaluates.
func (sys *system) hourLong(t *testing.T) *function {
	t.Helper()
	return sys.variant(t, "conformance/echo", "hour-long", func(config *v1.Config) {
		config.Entrypoint = []string{functionProgram, "sleep=1h"}
		withoutPrefork(config)
	})
}

// awaitRunning waits until all callers' requests are evaluated, and returns their pod.
func (f *function) awaitRunning(ctx context.Context, t *testing.T) *corev1.Pod {
	t.Helper()
	f.awaitPool(ctx, t, "all evaluate", func(p *podmanagerv1.Pool) bool { return p.GetActive() == callers })
	pod := f.pod(t)
	suite.Until(ctx, t, "all functions run",
		func() (bool, string) { return suite.CountProcesses(t, pod, functionProgram) >= callers, "" })
	return pod
}

// awaitEnded waits until no evaluation is left, neither as a lease nor as a process.
func (f *function) awaitEnded(ctx context.Context, t *testing.T, pod *corev1.Pod) {
	t.Helper()
	start := time.Now()
	f.awaitPool(ctx, t, "the leases have ended", func(p *podmanagerv1.Pool) bool { return p.GetActive() == 0 })
	t.Logf("the leases have ended %v later", time.Since(start).Round(time.Millisecond))
	suite.Until(ctx, t, "the functions have ended",
		func() (bool, string) { return suite.CountProcesses(t, pod, functionProgram) == 0, "" })
	t.Logf("the functions have ended %v later", time.Since(start).Round(time.Millisecond))
}

// replica returns the pod of a program by the program's name.
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

// gatewayKilled: callers get an error, leases end by themselves, and so do the functions.
func gatewayKilled(t *testing.T, sys *system) {
	f, next, ctx := sys.hourLong(t), sys.sleeper(t, "gateway-killed"), suite.Context(t)
	done := f.startMany(t)
	pod := f.awaitRunning(ctx, t)
	suite.Kill(t, suite.FindProcess(t, sys.pods["gateway"], suite.ProgramOf(sys.pods["gateway"])))
	for range callers {
		failsAsGone(t, <-done)
	}
	f.awaitEnded(ctx, t, pod)
	next.succeeds(t, "by the next gateway")
}
