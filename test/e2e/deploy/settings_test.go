// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// insecureRegistries are the variables with the registries without TLS, by the Deployment that
// calls registries.
var insecureRegistries = map[string]string{
	"image-resolver":  "FNR_INSECURE_REGISTRIES",
	"function-runner": "FNR_IMAGE_RESOLVER_INSECURE_REGISTRIES",
}

// ofTheMesh reports whether objects exist only on clusters with Istio. (test/deploy tests what they
// permit.)
func ofTheMesh(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupVersion() == manifests.Mesh
}

// onTheBed changes manifests for the test bed: it has no Istio, its open registry has no TLS, and
// its node has two processors, which all pods share.
func onTheBed(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	objects = slices.DeleteFunc(objects, ofTheMesh)
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		if name, ok := insecureRegistries[o.GetName()]; ok {
			suite.SetVariable(t, o, name, s.Registry(t, "open").Host)
		}
		suite.ChangeContainer(t, o, func(container map[string]any) { delete(container, "resources") })
	}
	return objects
}
