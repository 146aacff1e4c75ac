//go:build e2e

package deploy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// changeContainer changes the program's container in a Deployment.
func changeContainer(t *testing.T, deployment *unstructured.Unstructured, change func(container map[string]any)) {
	t.Helper()
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	change(containers[0].(map[string]any))
	if err := unstructured.SetNestedSlice(deployment.Object, containers, path...); err != nil {
		t.Fatal(err)
	}
}

// onTheBed changes manifests for the test bed: its open registry has no TLS, and its
// node has two processors, which nobody may have for himself.
func onTheBed(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	variable := map[string]string{
		"image-resolver":  "FNR_INSECURE_REGISTRIES",
		"function-runner": "FNR_IMAGE_RESOLVER_INSECURE_REGISTRIES",
	}
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		if name, ok := variable[o.GetName()]; ok {
			setVariables(t, o, map[string]string{name: openRegistry(t).Host})
		}
		changeContainer(t, o, func(container map[string]any) { delete(container, "resources") })
	}
	return objects
}

// setVariables adds variables to the program of a Deployment.
func setVariables(t *testing.T, deployment *unstructured.Unstructured, variables map[string]string) {
	t.Helper()
	changeContainer(t, deployment, func(container map[string]any) {
		env, _ := container["env"].([]any)
		for name, value := range variables {
			env = append(env, map[string]any{"name": name, "value": value})
		}
		container["env"] = env
	})
}
