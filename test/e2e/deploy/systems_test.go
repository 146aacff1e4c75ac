//go:build e2e

package deploy_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// changeVariables changes those of a Deployment.
func changeVariables(t *testing.T, objects []*unstructured.Unstructured, name string, change func(env []any) []any) {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" || o.GetName() != name {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil {
			t.Fatal(err)
		}
		container := containers[0].(map[string]any)
		container["env"] = change(container["env"].([]any))
		if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMicroservices(t *testing.T) {
	install(t, built(t, filepath.Join(root, "deploy/overlays/dev")))
	evaluates(t)
}

func TestFunctionRunner(t *testing.T) {
	install(t, built(t, filepath.Join(root, "deploy/overlays/dev-function-runner")))
	evaluates(t)
}
