// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package faults_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// gracefully is the pod's own grace period.
const gracefully = -1

// long is the time of an evaluation during which something happens to its pod.
const long = 3 * time.Second

// podDeletedWhileIdle: the next caller gets another pod.
func podDeletedWhileIdle(t *testing.T, sys *system) {
	f := sys.sleeper(t, "deleted-idle")
	f.succeeds(t, "cold")
	before := f.pod(t)
	f.delete(t, before, gracefully)
	f.succeeds(t, "at once after the pod was deleted")
	f.awaitGoing(t, before)
	f.succeeds(t, "by another pod")
	f.awaitReplaced(t, string(before.UID))
}

// podDeletedWhileEvaluating: the pod finishes its evaluation, and then ends.
func podDeletedWhileEvaluating(t *testing.T, sys *system) {
	f := sys.sleeper(t, "deleted-busy")
	f.succeeds(t, "cold")
	before := f.pod(t)
	wait := f.start(t, long)
	f.delete(t, before, gracefully)
	f.awaitGoing(t, before)
	f.succeeds(t, "while the pod that was deleted finishes")
	if err := wait(); err != nil {
		t.Errorf("the evaluation on the pod that was deleted: %v", err)
	}
	f.awaitReplaced(t, string(before.UID))
	// The last one may have been retried: the rules of its pod's Service may arrive a moment after the pod.
	list, err := gatewayv1.NewStatusServiceClient(f.gateway).ListEvaluations(suite.Context(t),
		&gatewayv1.ListEvaluationsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(list.GetEvaluations(),
		func(e *gatewayv1.Evaluation) bool { return e.GetImage() != f.image })
	slices.SortFunc(own, func(a, b *gatewayv1.Evaluation) int {
		return b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime())
	})
	if len(own) < 3 || own[1].GetAttempts() != 1 || own[1].GetPod() != before.Name {
		t.Errorf("the evaluations are, the last first, %v; want that the last but one finished on %s", own, before.Name)
	}
}

// podKilledWhileEvaluating: the evaluation is retried on another pod if necessary.
func podKilledWhileEvaluating(t *testing.T, sys *system) {
	f := sys.sleeper(t, "killed-busy")
	f.succeeds(t, "cold")
	before := f.pod(t)
	wait := f.start(t, long)
	f.delete(t, before, 0)
	if err := wait(); err != nil {
		t.Errorf("the evaluation on the pod that was killed: %v", err)
	}
	f.succeeds(t, "afterwards") // the kubelet may have let the other one finish
	f.awaitReplaced(t, string(before.UID))
}

// wrapperKilled: the evaluation is retried on another pod.
func wrapperKilled(t *testing.T, sys *system) {
	f := sys.sleeper(t, "wrapper-killed")
	f.succeeds(t, "cold")
	before := f.pod(t)
	wait := f.start(t, long)
	suite.Kill(t, suite.FindProcess(t, before, suite.WrapperServer(before)))
	if err := wait(); err != nil {
		t.Errorf("the evaluation whose wrapper server was killed: %v", err)
	}
	f.succeeds(t, "afterwards") // the other one may have ended before the kill
	f.awaitReplaced(t, string(before.UID))
}

// abandon deletes a pod that is not needed any more. Its Service is deleted after a minute.
func (sys *system) abandon(t *testing.T) {
	t.Helper()
	f := sys.function(t, s.Registry(t, "open").Host+"/test/sleep:v1")
	f.awaitSuccess(t) // the Services' rules may arrive a moment after their pods
	pod := f.pod(t)
	sys.abandoned = pod.Labels[idLabel]
	f.delete(t, pod, gracefully)
	s.AwaitGone(suite.Context(t), t, sys.functions, pod.Name)
}

// awaitGoing waits until the pod-manager knows that a pod is being deleted: until then the pod may
// get leases, which it serves.
func (f *function) awaitGoing(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	f.awaitPool(suite.Context(t), t, "it is known that the pod goes", func(p *podmanagerv1.Pool) bool {
		return !slices.ContainsFunc(p.GetPods(), func(known *podmanagerv1.Pod) bool {
			return known.GetUid() == string(pod.UID) && known.GetState() == podmanagerv1.Pod_STATE_READY
		})
	})
}

// awaitReplaced waits until the function has one pod, other than the one before.
func (f *function) awaitReplaced(t *testing.T, uid string) *podmanagerv1.Pool {
	t.Helper()
	return f.awaitPool(suite.Context(t), t, "the pod is replaced", func(p *podmanagerv1.Pool) bool {
		return ready(p) && p.GetPods()[0].GetUid() != uid && p.GetActive() == 0
	})
}

// serviceDeleted: it is created again, and the pod keeps running.
func serviceDeleted(t *testing.T, sys *system) {
	f := sys.sleeper(t, "service-deleted")
	f.succeeds(t, "cold")
	pod := f.pod(t)
	ctx, client := suite.Context(t), s.Client.CoreV1().Services(sys.functions)
	id := pod.Labels[idLabel]
	before, err := client.Get(ctx, id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(ctx, id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.succeeds(t, "at once after the Service was deleted")
	suite.Until(ctx, t, "the Service is there again", func() (bool, string) {
		now, err := client.Get(ctx, id, metav1.GetOptions{})
		return err == nil && now.UID != before.UID && now.Spec.Selector[idLabel] == id, now.String()
	})
	// Gateways without a connection find the pod by the Service.
	suite.Until(ctx, t, "no gateway has a connection any more", func() (bool, string) {
		_, connected := connections(t, suite.FindProcess(t, pod, suite.WrapperServer(pod)).PID)
		return connected == 0, "connected"
	})
	f.succeeds(t, "by the new Service")
	if after := f.awaitPool(ctx, t, "the pod is ready", ready); after.GetPods()[0].GetUid() != string(pod.UID) {
		t.Errorf("the pod was replaced: %v", after)
	}
}
