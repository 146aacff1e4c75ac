// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// credentials are the Secret that the overlay for private registries uses. (e2e/registries tests it
// further.)
const credentials = `apiVersion: v1
kind: Secret
metadata:
  name: auth-secret
  namespace: porch-system
type: kubernetes.io/dockerconfigjson
stringData:
  .dockerconfigjson: '{"auths": {}}'
`

// TestOverlays applies each overlay where Porch runs, and removes it again.
func TestOverlays(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	overlays, err := filepath.Glob(filepath.Join(root, "deploy/overlays/*"))
	if err != nil || len(overlays) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	for _, dir := range overlays {
		name := filepath.Base(dir)
		if name == filepath.Base(manifests.Namespaces) {
			continue // Porch has created them
		}
		for kind, objects := range map[string][]*unstructured.Unstructured{
			"published": published(t), "restricted": restricted(t, published(t)),
		} {
			if kind == "restricted" && name != "porch" && name != "porch-microservices" {
				continue // one overlay of each mode suffices
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				beside{place: aside(name + "-" + kind), porch: objects}.comesAndGoes(t, dir)
			})
		}
	}
}

// comesAndGoes applies an overlay by kubectl, evaluates through it, and restarts Porch's own
// Deployments, which still run. Then it removes ours as the documents say: Porch has everything back,
// and nothing of ours is left.
func (b beside) comesAndGoes(t *testing.T, dir string) {
	b.clean(t)
	b.apply(t, b.porch)
	before := b.namespaces(t)

	ours := s.OnTheBed(t, suite.Build(t, dir))
	if strings.Contains(b.system, "private-registry") {
		ours = append(ours, suite.Decode(t, credentials))
	}
	b.apply(t, ours)
	b.evaluates(t, setNamespace)
	b.evaluates(t, inPod(t))
	for _, o := range slices.Concat(b.porch, ours) {
		if o.GetKind() == "Deployment" {
			b.restart(t, o.GetName())
		}
	}

	if strings.Contains(dir, "/porch") {
		b.apply(t, b.porch)
		b.wayBack(t)
	} else {
		b.uninstall(t, ours)
		b.apply(t, b.porch)
	}
	b.evaluates(t, setNamespace)
	b.nothingIsLeft(t)
	if after := b.namespaces(t); after != before {
		t.Errorf("the namespaces were\n%s\nand are\n%s", before, after)
	}
}
