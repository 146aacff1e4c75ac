//go:build e2e

package deploy_test

import (
	"strings"
	"testing"
)

// porchImages are the images in Porch's manifests and the programs of ours that take
// their place.
var porchImages = map[string]string{
	// Porch's documentation.
	"gcr.io/example-google-project-id/porch-function-runner:latest": "function-runner",
	"gcr.io/example-google-project-id/porch-wrapper-server:latest":  "wrapper-server",
	"docker.io/nephio/porch-wrapper-server:latest":                  "wrapper-server",
	// Porch's manifests.
	"docker.io/nephio/porch-function-runner:latest": "function-runner",
	": function-runner:latest":                      "function-runner",
	": wrapper-server:latest":                       "wrapper-server",
}

// images replaces published images in manifests by those of the test bed.
func images(t *testing.T, content string) string {
	t.Helper()
	for name, program := range porchImages {
		if !strings.Contains(content, name) {
			continue
		}
		image := s.Program(t, program)
		if strings.HasPrefix(name, ":") {
			image = ": " + image
		}
		content = strings.ReplaceAll(content, name, image)
	}
	return s.OwnImages(t, content)
}
