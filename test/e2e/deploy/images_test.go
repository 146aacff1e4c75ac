// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// porchImages are the images in Porch's manifests with the programs that replace them.
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

// insteadOfPorchs replaces Porch's images in manifests by ours.
func insteadOfPorchs(t *testing.T, content string) string {
	t.Helper()
	for name, program := range porchImages {
		if !strings.Contains(content, name) {
			continue
		}
		image := s.Program(t, suite.Current, program)
		if strings.HasPrefix(name, ":") {
			image = ": " + image
		}
		content = strings.ReplaceAll(content, name, image)
	}
	return content
}
