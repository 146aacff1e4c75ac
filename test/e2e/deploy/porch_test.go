// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// namespaces are as in Porch's manifests: without labels.
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

// porchs returns Porch's objects from files, in their namespaces, with our images.
func porchs(t *testing.T, files ...string) []*unstructured.Unstructured {
	t.Helper()
	contents := []string{namespaces}
	for _, name := range files {
		file, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(file))
	}
	content := strings.ReplaceAll(strings.Join(contents, "\n---\n"), "REGISTRY/", s.Registry(t, "open").Host+"/")
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(insteadOfPorchs(t, content), "\n---\n") {
		objects = append(objects, suite.Decode(t, document))
	}
	return objects
}

// TestPorchsManifests applies the manifests of Porch, except for the names of images: our
// function-runner replaces Porch's, has its functions at the same paths, and creates pods with the
// rights that Porch's has.
func TestPorchsManifests(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]place{"porch-templating": aside("templating"), "porch-manifests": usual} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at.install(t, s.OnTheBed(t, porchs(t, name, "porch-rights")))
			at.evaluates(t, setNamespace)
			at.evaluates(t, inPod(t))
		})
	}
}

// TestPorchsExampleWithoutRights applies the complete example of Porch's documentation, which has
// no rights. Functions with a binary are evaluated anyway, and requests for others get an error
// with the missing right.
func TestPorchsExampleWithoutRights(t *testing.T) {
	t.Parallel()
	at := aside("configuration")
	at.install(t, porchs(t, "porch-configuration"))
	at.evaluates(t, setNamespace)
	err := suite.SetNamespace(suite.Context(t), at.caller(t), inPod(t), grpc.WaitForReady(true))
	cause := `is forbidden: User "system:serviceaccount:` + at.system + `:default" cannot list resource`
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), cause) {
		t.Errorf("got %v, want %v and %q", err, codes.FailedPrecondition, cause)
	}
}

// TestPorchIsReplacedInPlace applies our manifests over Porch's own: the same Deployment and
// Service continue under the new ones.
func TestPorchIsReplacedInPlace(t *testing.T) {
	t.Parallel()
	at := aside("replaced")
	at.install(t, s.OnTheBed(t, porchs(t, "porch-templating", "porch-rights")))
	at.replace(t, s.OnTheBed(t, suite.Build(t, filepath.Join(root, "deploy/overlays/porch"))))
	at.evaluates(t, setNamespace)
	at.evaluates(t, inPod(t))
}
