// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestGrace deletes pods in each part of their lives.
func TestGrace(t *testing.T) {
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}
	container := func(now, before corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: podspec.ContainerName, State: now, LastTerminationState: before}}
	}
	tests := map[string]struct {
		reason string
		states []corev1.ContainerStatus
		own    int64 // the pod's grace period
		want   int64 // zero for the pod's own
	}{
		"runs": {
			"it may have something to finish",
			container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ContainerState{}), 330, 0,
		},
		"starts":           {"it may not hear that it is to end", container(waiting, corev1.ContainerState{}), 330, 30},
		"is on no node":    {"it ends at once anyway", nil, 330, 30},
		"starts once more": {"callers may not have noticed", container(waiting, ended), 330, 0},
		"has ended":        {"likewise", container(ended, corev1.ContainerState{}), 330, 0},
		"has little time":  {"it does not get more", container(waiting, corev1.ContainerState{}), 20, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod, service := existing()
				pod.Status.ContainerStatuses = tc.states
				pod.Spec.TerminationGracePeriodSeconds = &tc.own
				w := start(t, nil, pod, service)
				w.Delete(pool.Delete{Name: podName, UID: string(pod.UID), Function: fn, Slot: 1})
				<-time.After(time.Second)
				if got := w.graceOfDeletion(t); got != tc.want {
					t.Errorf("it has %d s to end, want %d: %s", got, tc.want, tc.reason)
				}
			})
		})
	}
}

// graceOfDeletion is the grace period that the deletion of a pod asked for; zero for none.
func (w *world) graceOfDeletion(t *testing.T) int64 {
	t.Helper()
	for _, action := range w.client.Actions() {
		if d, ok := action.(clienttesting.DeleteActionImpl); ok && d.Resource.Resource == "pods" {
			if grace := d.GetDeleteOptions().GracePeriodSeconds; grace != nil {
				return *grace
			}
			return 0
		}
	}
	t.Fatal("no pod was deleted")
	return 0
}
