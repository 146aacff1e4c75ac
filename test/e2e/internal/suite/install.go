// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// Decode parses an object from YAML.
func Decode(t testing.TB, document string) *unstructured.Unstructured {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	return &object
}

// Build builds the kustomization in a directory. It returns the objects in the order to apply them.
func Build(t testing.TB, dir string) []*unstructured.Unstructured {
	t.Helper()
	documents, err := manifests.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range documents {
		objects = append(objects, Decode(t, string(document)))
	}
	return objects
}

// Namespaces returns all namespaces into which the manifests in deploy/ install the system.
func Namespaces(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	return Build(t, filepath.Join("../../../deploy", manifests.Namespaces)) // relative to the directory of a test package
}

// Rewrite converts each object to YAML, passes the YAML to a function that changes it, and returns the new objects.
func Rewrite(t testing.TB, objects []*unstructured.Unstructured, change func(
	string) string,
) []*unstructured.Unstructured {
	t.Helper()
	var changed []*unstructured.Unstructured
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		changed = append(changed, Decode(t, change(string(document))))
	}
	return changed
}

// Install applies objects and waits until the Deployments among them are rolled out.
func (s *Suite) Install(ctx context.Context, t testing.TB, objects ...*unstructured.Unstructured) {
	t.Helper()
	s.Apply(ctx, t, false, objects...)
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			s.AwaitRollout(ctx, t, object.GetNamespace(), object.GetName())
		}
	}
}

// ChangeContainer changes the first container of a Deployment, in which the program runs.
func ChangeContainer(t testing.TB, deployment *unstructured.Unstructured, change func(container map[string]any)) {
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

// SetVariable adds an environment variable to the program's container in a Deployment.
func SetVariable(t testing.TB, deployment *unstructured.Unstructured, name, value string) {
	t.Helper()
	ChangeContainer(t, deployment, func(container map[string]any) {
		env, _ := container["env"].([]any)
		container["env"] = append(env, map[string]any{"name": name, "value": value})
	})
}
