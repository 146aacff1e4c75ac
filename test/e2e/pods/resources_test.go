// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package pods_test

import (
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// deployed returns the resources that a program has by the manifests, for benchmarks: a pod that requests none is woken
// behind all others when processors are busy. In tests, which run beside each other, programs request nothing.
func deployed(t testing.TB, program string) (resources corev1.ResourceRequirements) {
	t.Helper()
	if _, measured := t.(*testing.B); !measured {
		return resources
	}
	for _, object := range suite.Build(t, filepath.Join(root, "deploy/base/microservices")) {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			var container corev1.Container
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.(map[string]any), &container); err != nil {
				t.Fatal(err)
			}
			if container.Name == program {
				return container.Resources
			}
		}
	}
	t.Fatalf("the manifests have no container %s", program)
	return resources
}
