// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// amounts are amounts of CPU and memory; an empty one is not there.
func amounts(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
		if amount != "" {
			list[name] = resource.MustParse(amount)
		}
	}
	return list
}

// resourcesOf returns the resources of the function container without ephemeral storage, which TestEphemeralStorage
// has.
func resourcesOf(r podspec.Request) corev1.ResourceRequirements {
	resources := builder().Pod(r).Spec.Containers[0].Resources
	delete(resources.Requests, corev1.ResourceEphemeralStorage)
	delete(resources.Limits, corev1.ResourceEphemeralStorage)
	return resources
}

// templateOf returns a template whose function container has these resources, in YAML.
func templateOf(t *testing.T, resources string) podspec.Template {
	t.Helper()
	text := pod("{containers: [{name: function, command: [/w], resources: " + resources + "}]}")
	template, _, err := podspec.Parse("1", map[string]string{"template": text}, defaults())
	if err != nil {
		t.Fatal(err)
	}
	return template
}

// TestResources gives a function resources of its own. Its template asks for 100m of CPU and 128Mi of memory, and has
// 2 and 1Gi as limits.
func TestResources(t *testing.T) {
	template := templateOf(t, "{requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: 2, memory: 1Gi}}")
	say := func(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
	tests := map[string]struct {
		reason    string
		own, want corev1.ResourceRequirements
	}{
		"none": {"", say(nil, nil), say(amounts("100m", "128Mi"), amounts("2", "1Gi"))},
		"one request": {
			"the rest stays",
			say(amounts("500m", ""), nil), say(amounts("500m", "128Mi"), amounts("2", "1Gi")),
		},
		"one limit": {
			"the rest stays",
			say(nil, amounts("", "4Gi")), say(amounts("100m", "128Mi"), amounts("2", "4Gi")),
		},
		"much": {
			"a larger request takes the limit along",
			say(amounts("", "3Gi"), nil), say(amounts("100m", "3Gi"), amounts("2", "3Gi")),
		},
		"little": {
			"a smaller limit takes the request along",
			say(nil, amounts("50m", "")), say(amounts("50m", "128Mi"), amounts("50m", "1Gi")),
		},
		"both": {"", say(amounts("3", ""), amounts("4", "")), say(amounts("3", "128Mi"), amounts("4", "1Gi"))},
		"another kind": {
			"",
			say(nil, corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}),
			say(amounts("100m", "128Mi"), corev1.ResourceList{
				"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("1"),
			}),
		},
		"in other digits": {
			"1024Mi are no more than 1Gi",
			say(amounts("", "1024Mi"), nil), say(amounts("100m", "1024Mi"), amounts("2", "1Gi")),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(template)
			r.Resources = &tc.own
			if diff := cmp.Diff(tc.want, resourcesOf(r)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	r, own := request(templateOf(t, "{limits: {cpu: 1}}")), say(amounts("", "1Gi"), nil)
	r.Resources = &own
	if diff := cmp.Diff(say(amounts("", "1Gi"), amounts("1", "")), resourcesOf(r)); diff != "" {
		t.Errorf("what neither the template nor the function says is left open (-want +got):\n%s", diff)
	}
}
