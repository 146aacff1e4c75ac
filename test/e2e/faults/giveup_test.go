//go:build e2e

package faults_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// giveUp has the function evaluated by a caller who leaves as soon as a pod is made.
func (f *function) giveUp(t *testing.T) {
	t.Helper()
	ctx, leave := context.WithCancel(suite.Context(t))
	defer leave()
	done := make(chan error, 1)
	go func() { done <- f.evaluate(ctx, 0) }()
	f.awaitPool(ctx, t, "a pod is on its way", func(p *podmanagerv1.Pool) bool { return p.GetWaiting() == 1 && len(p.GetPods()) == 1 })
	leave()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("the caller who left got %v", err)
	}
	f.awaitPool(suite.Context(t), t, "nobody waits", func(p *podmanagerv1.Pool) bool { return p.GetWaiting() == 0 })
}

// callerGivesUp: the pod stays for the next caller, who finds it ready.
func callerGivesUp(t *testing.T, sys *system) {
	f := sys.sleeper(t, "given-up")
	f.giveUp(t)
	ctx := suite.Context(t)
	if left := f.awaitPool(ctx, t, "its pod is ready", ready); left.GetLeasesTotal() != 0 || left.GetActive() != 0 {
		t.Errorf("the caller who left counts: %v", left)
	}
	before := f.pod(t)
	f.succeeds(t, "the next caller")
	after := f.awaitPool(ctx, t, "it is ready", ready)
	if after.GetLeasesTotal() != 1 || after.GetColdStartsTotal() != 0 || after.GetPods()[0].GetUid() != string(before.UID) {
		t.Errorf("the next caller did not just use the pod: %v", after)
	}
}

// callerGivesUpForGood: the pod goes by its time to live, which pod-cache-config.yaml
// has at three seconds.
func callerGivesUpForGood(t *testing.T, sys *system) {
	f := sys.sleeper(t, "short-lived")
	f.giveUp(t)
	start := time.Now()
	f.awaitEmpty(t)
	f.awaitServices(suite.Context(t), t)
	t.Logf("pod and Service went %v after the caller", time.Since(start).Round(time.Millisecond))
	f.succeeds(t, "somebody who comes later")
}
