// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

var today = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// ours returns a pod of this program with an id.
func ours(id string, age time.Duration) *corev1.Pod {
	pod := theirs(id, "1")
	pod.Annotations[podspec.AnnotationReference] = "example.com/fn:v1"
	pod.Annotations[podspec.AnnotationDigest] = "sha256:0123"
	pod.Annotations[podspec.AnnotationSlot] = "1"
	pod.CreationTimestamp = metav1.NewTime(today.Add(-age))
	return pod
}

// theirs returns a pod of Porch's function runner with an id.
func theirs(id, reclaimAfter string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: id + "-pod", Labels: map[string]string{podspec.LabelID: id},
		Annotations: map[string]string{podspec.AnnotationReclaimAfter: reclaimAfter},
	}}
}

// going returns a pod on its way out.
func going(pod *corev1.Pod) *corev1.Pod {
	pod.DeletionTimestamp = new(metav1.NewTime(today))
	return pod
}

// service returns the Service of the pod with an id.
func service(id string, age time.Duration) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: id, Labels: map[string]string{podspec.LabelID: id}, CreationTimestamp: metav1.NewTime(today.Add(-age)),
		},
		Spec: corev1.ServiceSpec{Selector: map[string]string{podspec.LabelID: id}},
	}
}

func TestPlan(t *testing.T) {
	foreign := service("a", time.Hour)
	foreign.Name = "all-of-a"
	wide := service("a", time.Hour)
	wide.Spec.Selector = map[string]string{"app": "a"}
	deleted := service("a", time.Hour)
	deleted.DeletionTimestamp = new(metav1.NewTime(today))
	type names struct{ PodlessServices, WithoutService []string }
	tests := map[string]struct {
		reason   string
		pods     []*corev1.Pod
		services []*corev1.Service
		want     names
	}{
		"nothing": {"there is nothing to do", nil, nil, names{}},
		"pair": {
			"they belong together",
			[]*corev1.Pod{ours("a", time.Hour)},
			[]*corev1.Service{service("a", time.Hour)},
			names{},
		},
		"without a pod": {
			"its pod is gone",
			[]*corev1.Pod{ours("b", 0)},
			[]*corev1.Service{service("a", time.Hour)},
			names{PodlessServices: []string{"a"}},
		},
		"without a pod, young": {
			"its pod may be on its way", nil, []*corev1.Service{service("a", minServiceAge-1)}, names{},
		},
		"without a pod, deleted": {"it goes already", nil, []*corev1.Service{deleted}, names{}},
		"pod on its way": {
			"its Service is still in use",
			[]*corev1.Pod{going(ours("a", time.Hour))},
			[]*corev1.Service{service("a", time.Hour)},
			names{},
		},
		"Porch's pod": {
			"it uses its Service too",
			[]*corev1.Pod{theirs("a", "1")},
			[]*corev1.Service{service("a", time.Hour)},
			names{},
		},
		"a user's":        {"its name is not that of a pod's Service", nil, []*corev1.Service{foreign}, names{}},
		"a user's choice": {"it selects something else", nil, []*corev1.Service{wide}, names{}},
		"without a Service": {
			"its Service is gone",
			[]*corev1.Pod{ours("a", time.Hour)},
			[]*corev1.Service{service("b", 0)},
			names{WithoutService: []string{"a-pod"}},
		},
		"young": {"its Service may be on its way", []*corev1.Pod{ours("a", minPodAge-1)}, nil, names{}},
		"left alone": {
			"its creator may have been killed, and callers wait",
			[]*corev1.Pod{ours("a", minPodAge)},
			nil,
			names{WithoutService: []string{"a-pod"}},
		},
		"without a Service, going": {"it needs none any more", []*corev1.Pod{going(ours("a", time.Hour))}, nil, names{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			podless, withoutService := findGarbage(today, tc.pods, tc.services)
			got := names{namesOf(podless), namesOf(withoutService)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func namesOf[T metav1.Object](objects []T) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}
