// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// InsecureRegistries are the variables with the registries without TLS, by the Deployment that
// calls registries.
var InsecureRegistries = map[string]string{
	"image-resolver":  "FNR_INSECURE_REGISTRIES",
	"function-runner": "FNR_INSECURE_REGISTRIES",
}

// OfTheMesh reports whether objects exist only on clusters with Istio. (test/deploy tests their permissions.)
func OfTheMesh(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupVersion() == manifests.Mesh
}

// OnTheBed changes manifests for the test bed: it has no Istio, its open registry has no TLS, and
// its node has two processors, which all pods share. They keep their requests for memory, without which a kubelet
// would evict them first.
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
