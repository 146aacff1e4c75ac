// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Mount adds a volume to a Deployment and mounts it at path in the first container. Source contains the fields of the
// volume except for its name.
func Mount(t testing.TB, deployment *unstructured.Unstructured, name, path string, source map[string]any) {
	t.Helper()
	where := []string{"spec", "template", "spec", "volumes"}
	volumes, _, err := unstructured.NestedSlice(deployment.Object, where...)
	if err == nil {
		volume := map[string]any{"name": name}
		for key, value := range source {
			volume[key] = value
		}
		err = unstructured.SetNestedSlice(deployment.Object, append(volumes, volume), where...)
	}
	if err != nil {
		t.Fatal(err)
	}
	ChangeContainer(t, deployment, func(container map[string]any) {
		mounts, _ := container["volumeMounts"].([]any)
		container["volumeMounts"] = append(mounts, map[string]any{"name": name, "mountPath": path})
	})
}
