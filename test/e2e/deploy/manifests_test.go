//go:build e2e

package deploy_test

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// warnings collects what the API server warns of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// TestAPIServerAcceptsEveryManifest has it check all of them, without doing anything
// but making the namespaces. It warns of pods that these would refuse.
func TestAPIServerAcceptsEveryManifest(t *testing.T) {
	usual.clean(t)
	ctx := suite.Context(t)
	overlays, err := filepath.Glob(filepath.Join(root, "deploy/overlays/*"))
	if err != nil || len(overlays) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	for _, dir := range slices.Concat(overlays, []string{
		filepath.Join(root, "deploy/base/microservices"), filepath.Join(root, "deploy/base/function-runner"),
	}) {
		t.Run(strings.TrimPrefix(dir, root+"/deploy/"), func(t *testing.T) {
			var heard warnings
			warned, err := s.WithWarnings(&heard)
			if err != nil {
				t.Fatal(err)
			}
			objects := slices.DeleteFunc(suite.Build(t, dir), ofTheMesh)
			namespaces := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" })
			s.Apply(ctx, t, false, namespaces...)
			warned.Apply(ctx, t, true, objects...)
			for _, text := range heard.texts {
				t.Errorf("the API server warns: %s", text)
			}
		})
	}
}
