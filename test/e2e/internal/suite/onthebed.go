// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// InsecureRegistries maps names of Deployments to the environment variable that permits registries without TLS.
var InsecureRegistries = map[string]string{
	"image-resolver":  "FNR_INSECURE_REGISTRIES",
	"function-runner": "FNR_INSECURE_REGISTRIES",
}

// OfTheMesh reports whether an object's kind exists only in clusters with Istio. test/deploy tests such objects.
func OfTheMesh(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupVersion() == manifests.Mesh
}

// OnTheBed adapts manifests to the test bed. It removes Istio's objects, and permits the registry without TLS. It also
// removes the containers' resource limits and CPU requests, because the only node has just two processors. It keeps the
// memory requests. Without them, the kubelet would evict these pods before all other pods.
func (s *Suite) OnTheBed(t testing.TB, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	objects = slices.DeleteFunc(objects, OfTheMesh)
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		if name, ok := InsecureRegistries[o.GetName()]; ok {
			SetVariable(t, o, name, s.Registry(t, "open").Host)
		}
		ChangeContainer(t, o, func(container map[string]any) {
			memory, _, _ := unstructured.NestedString(container, "resources", "requests", "memory")
			delete(container, "resources")
			if memory != "" {
				container["resources"] = map[string]any{"requests": map[string]any{"memory": memory}}
			}
		})
	}
	return objects
}
