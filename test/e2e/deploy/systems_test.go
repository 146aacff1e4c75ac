//go:build e2e

package deploy_test

import (
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withoutPodManager takes out what the image of no program exists for yet.
func withoutPodManager(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetName() == "pod-manager" })
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		container := containers[0].(map[string]any)
		container["env"] = slices.DeleteFunc(container["env"].([]any), func(v any) bool {
			return v.(map[string]any)["name"] == "FNR_POD_MANAGER"
		})
		if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
	}
	return objects
}

func TestMicroservices(t *testing.T) {
	install(t, withoutPodManager(t, built(t, filepath.Join(root, "deploy/overlays/dev"))))
	evaluates(t)
}

func TestFunctionRunner(t *testing.T) {
	install(t, built(t, filepath.Join(root, "deploy/overlays/dev-function-runner")))
	evaluates(t)
}
