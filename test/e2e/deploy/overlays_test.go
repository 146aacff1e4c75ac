//go:build e2e

package deploy_test

import (
	"path/filepath"
	"testing"
)

// TestOverlays installs each of them and evaluates through it. (The one for private
// registries has its own tests, with Secrets: see e2e/registries.)
func TestOverlays(t *testing.T) {
	t.Parallel() // with whatever else has namespaces of its own
	for _, name := range []string{"dev", "dev-function-runner", "porch", "production", "service-mesh"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := aside(name)
			at.install(t, onTheBed(t, built(t, filepath.Join(root, "deploy/overlays", name))))
			at.evaluates(t, setNamespace)
			at.evaluates(t, inPod(t))
		})
	}
}
