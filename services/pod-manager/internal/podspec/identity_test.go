// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func TestIdentify(t *testing.T) {
	r := request(parsed(t, "porch"))
	r.Slot = 3
	const id = "set-namespace-v045-3-e3b0c442"
	want := pool.Observation{
		Name: r.Name, Function: pool.Function{Reference: r.Function.Reference, Digest: digest}, Slot: 3,
		TemplateVersion: "4711", SettingsVersion: builder().SettingsVersion(r), ReclaimAfter: r.ReclaimAfter,
	}
	pod := builder().Pod(r)
	got, ok := podspec.Identify(pod)
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("Identify: %v (-want +got):\n%s", ok, diff)
	}

	service := builder().Service(r)
	if pod.Labels[podspec.LabelID] != id || service.Name != id || service.Spec.Selector[podspec.LabelID] != id {
		t.Errorf("the pod's id is %q; the Service is called %q and selects %v: want %q",
			pod.Labels[podspec.LabelID], service.Name, service.Spec.Selector, id)
	}
	if diff := cmp.Diff(service, builder().ServiceOf(pod, r.Template)); diff != "" {
		t.Errorf("the Service of the pod that is there (-want +got):\n%s", diff)
	}
}

func TestIdentifyOthers(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*corev1.Pod)
	}{
		"porch's pod": {"Porch's function runner has the label only", func(p *corev1.Pod) { p.Annotations = nil }},
		"no label":    {"without label its Service does not lead to it", func(p *corev1.Pod) { p.Labels = nil }},
		"no slot":     {"its place is unknown", func(p *corev1.Pod) { p.Annotations[podspec.AnnotationSlot] = "first" }},
		"slot zero":   {"slots count from one", func(p *corev1.Pod) { p.Annotations[podspec.AnnotationSlot] = "0" }},
		"no reference": {
			"what it runs is unknown",
			func(p *corev1.Pod) { delete(p.Annotations, podspec.AnnotationReference) },
		},
		"without digest": {
			"what it runs is not exactly known",
			func(p *corev1.Pod) { delete(p.Annotations, podspec.AnnotationDigest) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := builder().Pod(request(podspec.Default(defaults())))
			tc.change(pod)
			if got, ok := podspec.Identify(pod); ok {
				t.Errorf("Identify = %v, true: %s", got, tc.reason)
			}
		})
	}
}

func TestUnreadableReclaimAfter(t *testing.T) {
	for _, text := range []string{"", "soon", "-1", "0", "1.5", "99999999999999", "2026-01-01T00:00:00Z"} {
		pod := builder().Pod(request(podspec.Default(defaults())))
		pod.Annotations[podspec.AnnotationReclaimAfter] = text
		got, ok := podspec.Identify(pod)
		if !ok || !got.ReclaimAfter.IsZero() {
			t.Errorf("reclaim-after %q: %v, %v, want a pod of ours that gets a new one", text, got.ReclaimAfter, ok)
		}
	}
}
