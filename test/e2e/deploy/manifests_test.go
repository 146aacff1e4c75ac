// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/pod-security-admission/api"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// warnings collects the API server's warnings.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// TestAPIServerAcceptsEveryManifest sends each object of all kustomizations to the API server,
// which checks it (only namespaces are created). The API server warns of pods that are not
// restricted, which must not happen except for components that are not a whole system. Only objects of
// a mesh are left out.
func TestAPIServerAcceptsEveryManifest(t *testing.T) {
	usual.clean(t)
	ctx := suite.Context(t)
	if _, err := s.Client.Discovery().ServerResourcesForGroupVersion(manifests.Mesh.String()); !apierrors.IsNotFound(err) {
		t.Errorf("the API server knows %s (%v): let it check that too", manifests.Mesh, err)
	}
	namespaces := suite.Namespaces(t)
	for _, ns := range namespaces {
		ns.SetLabels(map[string]string{api.WarnLevelLabel: string(api.LevelRestricted)})
	}
	s.Apply(ctx, t, false, namespaces...)
	systems, parts := buildAll(t)

	var heard warnings
	warned, err := s.WithWarnings(&heard)
	if err != nil {
		t.Fatal(err)
	}
	warned.Apply(ctx, t, true, systems...)
	for _, text := range heard.texts {
		t.Errorf("the API server warns: %s", text)
	}
	s.Apply(ctx, t, true, parts...)
	t.Logf("%d objects of systems, %d of parts", len(systems), len(parts))
}

// managesPods reports whether an object is the Role that each whole system has.
func managesPods(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Role" && o.GetName() == "function-pods"
}

// buildAll returns the objects of all kustomizations, and of those in the documents: each once,
// however often it occurs. Parts are objects that occur only in kustomizations that are no system.
func buildAll(t *testing.T) (systems, parts []*unstructured.Unstructured) {
	t.Helper()
	dirs := manifests.Combinations(t, filepath.Join(root, "deploy"))
	maps.Copy(dirs, manifests.Documented(t, root))
	seen := map[string]bool{}
	ofParts := map[string]*unstructured.Unstructured{}
	for _, dir := range dirs {
		objects := slices.DeleteFunc(suite.Build(t, dir), suite.OfTheMesh)
		whole := slices.ContainsFunc(objects, managesPods)
		for _, o := range objects {
			if ns := o.GetNamespace(); ns != "" && ns != usual.functions {
				o.SetNamespace(usual.system) // the namespace of the dashboards does not exist
			}
			content, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			switch key := string(content); {
			case !whole:
				ofParts[key] = o
			case !seen[key]:
				seen[key] = true
				systems = append(systems, o)
			}
		}
	}
	for key, o := range ofParts {
		if !seen[key] {
			parts = append(parts, o)
		}
	}
	return systems, parts
}
