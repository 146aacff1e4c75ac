// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// Containers share the clock of the machine, so no program can have a wrong one. In one system the
// API server reports another time instead, see wrongTime. In the other, the test writes to pods
// what a pod-manager with a wrong clock would have written. (The times that a kubelet with a wrong
// clock reports are only compared with each other.)

// ends sets the expiry of a pod by a clock that is an hour off.
func (f *function) ends(t *testing.T, at time.Time) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"fn.kpt.dev/reclaim-after":"%d"}}}`, at.Unix())
	_, err := s.Client.CoreV1().Pods(f.functions).Patch(suite.Context(t), f.pod(t).Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// clockBehind: a pod-manager whose clock is an hour behind creates pods that have expired by the
// clock of all others. A pod in use stays nevertheless; its expiry is corrected.
func clockBehind(t *testing.T, sys *system) {
	f := sys.sleeper(t, "clock-behind")
	f.succeeds(t, "cold")
	before := f.pod(t)
	wait := f.start(t, long)
	f.ends(t, time.Now().Add(-30*time.Minute))
	if err := wait(); err != nil {
		t.Errorf("the evaluation: %v", err)
	}
	f.succeeds(t, "afterwards")
	if after := f.pod(t); after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Error("the pod was collected while it was in use")
	}
}

// clockAhead: a pod-manager whose clock is an hour ahead lets pods live an hour longer, and not for
// ever. All pod-managers use the latest expiry that is written.
func clockAhead(t *testing.T, sys *system) {
	f := sys.sleeper(t, "clock-ahead")
	f.succeeds(t, "cold")
	end := time.Now().Add(90 * time.Minute)
	f.ends(t, end)
	f.awaitPool(suite.Context(t), t, "the later end is known", func(p *podmanagerv1.Pool) bool {
		return ready(p) && p.GetPods()[0].GetReclaimTime().AsTime().Unix() == end.Unix()
	})
	f.succeeds(t, "afterwards")
}

// behind is the lag of the clock of the system's own node to the API server's.
const behind = time.Hour

// ownClockBehind: the program detects it, and writes expiries to its pods by the clock that all
// share. Its own pods live as long as they should.
func ownClockBehind(t *testing.T, sys *system) {
	program := sys.pods["function-runner"]
	s.AwaitLog(t, sys.services, program.Name, program.CreationTimestamp.Time,
		"the clocks of this machine and of the Kubernetes API differ")
	f := sys.sleeper(t, "own-clock-behind")
	f.succeeds(t, "cold")
	ctx := suite.Context(t)
	pool := f.awaitPool(ctx, t, "it is ready", ready)
	seconds, err := strconv.ParseInt(f.pod(t).Annotations["fn.kpt.dev/reclaim-after"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	const tolerance = time.Minute // another use may have extended it
	own, written := pool.GetPods()[0].GetReclaimTime().AsTime(), time.Unix(seconds, 0)
	if off := written.Sub(own) - behind; off.Abs() > tolerance {
		t.Errorf("the expiry that is %v by the own clock is written as %v, want an hour later", own, written)
	}
}
