//go:build e2e

package deploy_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/test/bed"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// published are the images in manifests and the programs that are in them.
var published = map[string]string{
	"ghcr.io/krm-function-runner/gateway:latest":         "gateway",
	"ghcr.io/krm-function-runner/image-resolver:latest":  "image-resolver",
	"ghcr.io/krm-function-runner/pod-manager:latest":     "pod-manager",
	"ghcr.io/krm-function-runner/function-runner:latest": "function-runner",
	"ghcr.io/krm-function-runner/wrapper-server:latest":  "wrapper-server",
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
	open := openRegistry(t)
	for name, program := range published {
		if !strings.Contains(content, name) {
			continue
		}
		image := open.Host + "/programs/" + program + "@" + digest(t, open.URL, "programs/"+program)
		if strings.HasPrefix(name, ":") {
			image = ": " + image
		}
		content = strings.ReplaceAll(content, name, image)
	}
	return content
}

// digest is the latest image's: nodes keep what they have once pulled by a tag.
func digest(t *testing.T, registry, repository string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(suite.Context(t), http.MethodHead, registry+"/v2/"+repository+"/manifests/latest", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	found := response.Header.Get("Docker-Content-Digest")
	if found == "" {
		t.Fatalf("the registry has no %s: %s", repository, response.Status)
	}
	return found
}

// openRegistry is the registry of the test bed that asks for nothing.
func openRegistry(t *testing.T) bed.Registry {
	t.Helper()
	if s.Bed == nil {
		t.Fatal("these tests need a cluster of the test bed: run them with `make e2e` and without KUBECONFIG")
	}
	open, err := s.Bed.Registry("open")
	if err != nil {
		t.Fatal(err)
	}
	return open
}
