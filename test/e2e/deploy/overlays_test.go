// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
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

// TestOverlays installs each overlay and evaluates through it.
func TestOverlays(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	overlays, err := filepath.Glob(filepath.Join(root, "deploy/overlays/*"))
	if err != nil || len(overlays) == 0 {
		t.Fatalf("no overlays: %v", err)
	}
	for _, dir := range overlays {
		name := filepath.Base(dir)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := s.OnTheBed(t, suite.Build(t, dir))
			if name == "private-registry" {
				objects = append(objects, suite.Decode(t, credentials))
			}
			at := aside(name)
			at.install(t, objects)
			at.evaluates(t, setNamespace)
			at.evaluates(t, inPod(t))
		})
	}
}
