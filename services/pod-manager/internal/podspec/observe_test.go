// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestObserve(t *testing.T) {
	created := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pod", UID: "uid", ResourceVersion: "7", CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{podspec.LabelID: "fn-v1-2-01234567"},
			Annotations: map[string]string{
				podspec.AnnotationReference: "example.com/fn:v1", podspec.AnnotationDigest: "sha256:0123",
				podspec.AnnotationSlot:            "2",
				podspec.AnnotationTemplateVersion: "9", podspec.AnnotationSettingsVersion: "8",
				podspec.AnnotationReclaimAfter: "1000000000",
			},
		},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{
			{Name: podspec.ContainerName, Image: "example.com/fn@sha256:0123"},
		}},
		Status: corev1.PodStatus{PodIP: "10.1.2.3", ContainerStatuses: []corev1.ContainerStatus{
			{Name: podspec.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
	whole := pool.Observation{
		Name: "pod", UID: "uid", ResourceVersion: "7",
		Function: pool.Function{Reference: "example.com/fn:v1", Digest: "sha256:0123"},
		Slot:     2, TemplateVersion: "9", SettingsVersion: "8", Created: created, ReclaimAfter: time.Unix(1000000000, 0),
		Phase: pool.PhaseConnecting, Node: "node",
	}
	tests := map[string]struct {
		reason string
		change func(*corev1.Pod)
		want   func(*pool.Observation)
		ours   bool
	}{
		"running": {"all that a pod says arrives", func(*corev1.Pod) {}, func(*pool.Observation) {}, true},
		"foreign": {
			"pods of Porch's runner have no slot",
			func(p *corev1.Pod) { delete(p.Annotations, podspec.AnnotationSlot) },
			func(o *pool.Observation) { *o = pool.Observation{} }, false,
		},
		"no end": {
			"the pool gives it one",
			func(p *corev1.Pod) { p.Annotations[podspec.AnnotationReclaimAfter] = "?" },
			func(o *pool.Observation) { o.ReclaimAfter = time.Time{} }, true,
		},
		"new": {"no component has updated it", func(p *corev1.Pod) {
			p.Spec = corev1.PodSpec{}
			p.Status = corev1.PodStatus{}
		}, func(o *pool.Observation) {
			o.Phase = pool.PhaseCreating
			o.Node = ""
			o.ByTag = true
		}, true},
		"deleting": {
			"an end that has begun is no problem of the pod's",
			func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(created)) },
			func(o *pool.Observation) { o.Deleting = true }, true,
		},
		"sidecar": {"an injector put it before the function's container", func(p *corev1.Pod) {
			p.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "proxy"}}, p.Spec.Containers...)
			p.Status.ContainerStatuses = append([]corev1.ContainerStatus{{
				Name: "proxy", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
			}}, p.Status.ContainerStatuses...)
		}, func(*pool.Observation) {}, true},
		"limit range": {"its defaults make no other pod", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
			p.Annotations["kubernetes.io/limit-ranger"] = "LimitRanger plugin set: cpu limit for container function"
		}, func(*pool.Observation) {}, true},
		"unschedulable": {"room may appear", func(p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Status = corev1.PodStatus{Conditions: []corev1.PodCondition{
				{
					Type:   corev1.PodScheduled,
					Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available",
				},
			}}
		}, func(o *pool.Observation) {
			o.Phase = pool.PhaseScheduling
			o.Node = ""
			o.Reason = "Unschedulable: 0/1 nodes are available"
			o.Problem = pool.Problem{Kind: pool.Held, Reason: "Unschedulable: 0/1 nodes are available"}
		}, true},
		"no image": {"the next pod would not find it either", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "manifest unknown"},
			}
		}, func(o *pool.Observation) {
			o.Phase = pool.PhasePulling
			o.Reason = `container "function": ErrImagePull: manifest unknown`
			o.Problem = pool.Problem{Kind: pool.Fatal, Reason: `ErrImagePull: container "function": manifest unknown`}
		}, true},
		"evicted": {"the next pod may do better", func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Reason = "Evicted"
			p.Status.Message = "low on memory"
		}, func(o *pool.Observation) { o.Problem = pool.Problem{Kind: pool.Lost, Reason: "Evicted: low on memory"} }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			changed, want := pod.DeepCopy(), whole
			tc.change(changed)
			tc.want(&want)
			got, ours := podspec.Observe(changed)
			if diff := cmp.Diff(want, got); diff != "" || ours != tc.ours {
				t.Errorf("ours %v, want %v: %s (-want +got):\n%s", ours, tc.ours, tc.reason, diff)
			}
		})
	}
}
