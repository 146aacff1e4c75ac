// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// giveUp evaluates the function for a caller that cancels as soon as a pod is created.
func (f *function) giveUp(t *testing.T) {
	t.Helper()
	ctx, leave := context.WithCancel(suite.Context(t))
	defer leave()
	done := make(chan error, 1)
	go func() { done <- f.evaluate(ctx, 0) }()
	f.awaitPool(ctx, t, "a pod is on its way",
		func(p *podmanagerv1.Pool) bool { return p.GetWaiting() == 1 && len(p.GetPods()) == 1 })
	leave()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("the caller that cancelled got %v", err)
	}
	f.awaitPool(suite.Context(t), t, "no request waits", func(p *podmanagerv1.Pool) bool { return p.GetWaiting() == 0 })
}

// callerGivesUp: the pod stays for the next caller, which finds it ready.
func callerGivesUp(t *testing.T, sys *system) {
	f := sys.sleeper(t, "given-up")
	f.giveUp(t)
	ctx := suite.Context(t)
	if left := f.awaitPool(ctx, t, "its pod is ready", ready); left.GetLeasesTotal() != 0 || left.GetActive() != 0 {
		t.Errorf("the caller that cancelled counts: %v", left)
	}
	before, retries := f.pod(t), f.retries(ctx, t)
	f.succeeds(t, "the next caller")
	after := f.awaitPool(ctx, t, "it is ready and has been used",
		func(p *podmanagerv1.Pool) bool { return ready(p) && p.GetLeasesTotal() > 0 })
	retries = f.retries(ctx, t) - retries // of all functions
	if after.GetLeasesTotal() > 1+retries || after.GetColdStartsTotal() != 0 ||
		after.GetPods()[0].GetUid() != string(before.UID) {
		t.Errorf("the next caller did more than use the pod: %v", after)
	}
}

// callerGivesUpWhileEvaluating: the same pod serves the next caller.
func callerGivesUpWhileEvaluating(t *testing.T, sys *system) {
	f := sys.variant(t, "test/sleep", "given-up-busy", withoutPrefork)
	f.succeeds(t, "cold")
	before := f.pod(t)
	f.giveUpBusy(t, before)
	f.succeeds(t, "the next caller")
	if after := f.pod(t); after.UID != before.UID {
		t.Error("the pod was replaced")
	}
}

// callerGivesUpOnStubborn: the function neither reads nor writes, and ignores SIGTERM.
func callerGivesUpOnStubborn(t *testing.T, sys *system) {
	f := sys.variant(t, "conformance/ignore-sigterm", "given-up", withoutPrefork)
	f.giveUp(t) // no caller would ever get an answer; the pod stays
	f.awaitPool(suite.Context(t), t, "its pod is ready", ready)
	f.giveUpBusy(t, f.pod(t))
}

// withoutPrefork has processes write more than a spare one may: each process of the function evaluates.
func withoutPrefork(config *v1.Config) { config.Env = append(config.Env, "TESTFN_GREETING=65537") }

// giveUpBusy evaluates the function on its ready pod for a caller that cancels while the function's
// process runs. The process ends, nothing is in use any more, and the pod keeps running.
func (f *function) giveUpBusy(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	ctx, leave := context.WithCancel(suite.Context(t))
	defer leave()
	done := make(chan error, 1)
	go func() { done <- f.evaluate(ctx, time.Hour) }()
	runs := func(want int) func() (bool, string) {
		return func() (bool, string) {
			n := suite.CountProcesses(t, pod, functionProgram)
			return n == want, fmt.Sprintf("%d processes", n)
		}
	}
	suite.Until(ctx, t, "the function runs", runs(1))
	leave()
	start := time.Now()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("the caller that cancelled got %v", err)
	}
	ctx = suite.Context(t)
	suite.Until(ctx, t, "the function's process has ended", runs(0))
	f.awaitPool(ctx, t, "nothing is in use, and the pod is ready", func(p *podmanagerv1.Pool) bool {
		return ready(p) && p.GetActive() == 0 && p.GetWaiting() == 0
	})
	t.Logf("nothing runs and nothing is in use %v after the cancellation", time.Since(start).Round(time.Millisecond))
	after := f.pod(t)
	if after.UID != pod.UID || after.DeletionTimestamp != nil || after.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the pod did not keep running: it is %s", suite.Describe(after))
	}
}

// callerGivesUpForGood: the pod expires after its time to live, which is ten seconds in
// pod-cache-config.yaml.
func callerGivesUpForGood(t *testing.T, sys *system) {
	f := sys.sleeper(t, "short-lived")
	f.giveUp(t)
	start := time.Now()
	f.awaitEmpty(t)
	f.awaitServices(suite.Context(t), t)
	t.Logf("pod and Service went %v after the cancellation", time.Since(start).Round(time.Millisecond))
	f.succeeds(t, "a later call")
}
