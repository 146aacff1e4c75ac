//go:build e2e

package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// namespaces are as Porch's manifests have them: without labels.
const namespaces = `apiVersion: v1
kind: Namespace
metadata:
  name: porch-system
---
apiVersion: v1
kind: Namespace
metadata:
  name: porch-fn-system
`

// TestPorchsManifests applies what users have from Porch's documentation, but for the
// names of images: our function-runner takes the place of Porch's, and brings its
// functions along at the same paths.
func TestPorchsManifests(t *testing.T) {
	for _, name := range []string{"porch-configuration", "porch-templating"} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			install(t, split(t, namespaces+"---\n"+string(content)))
			evaluates(t)
		})
	}
}

func split(t *testing.T, content string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(content, "\n---\n") {
		objects = append(objects, decode(t, document))
	}
	return objects
}

// TestPorchIsReplacedInPlace applies our manifests over Porch's own: the same
// Deployment and Service go on under the new ones.
func TestPorchIsReplacedInPlace(t *testing.T) {
	content, err := os.ReadFile("testdata/porch-templating.yaml")
	if err != nil {
		t.Fatal(err)
	}
	install(t, split(t, namespaces+"---\n"+string(content)))
	install(t, built(t, filepath.Join(root, "deploy/overlays/porch")))
	evaluates(t)
}
