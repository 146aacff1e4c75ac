//go:build e2e

package deploy_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// root is the repository's, from here.
const root = "../../.."

// The namespaces of every system. The tests share them, one after the other.
const (
	system    = "porch-system"
	functions = "porch-fn-system"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

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
	": function-runner:latest":                                      "function-runner",
	": wrapper-server:latest":                                       "wrapper-server",
}

// images replaces published images in manifests by those of the test bed.
func images(t *testing.T, content string) string {
	t.Helper()
	if s.Bed == nil {
		t.Fatal("these tests need a cluster of the test bed: run them with `make e2e` and without KUBECONFIG")
	}
	open, err := s.Bed.Registry("open")
	if err != nil {
		t.Fatal(err)
	}
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

// built are the objects of a kustomization.
func built(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	var decoded []*unstructured.Unstructured
	for _, object := range objects {
		decoded = append(decoded, decode(t, string(object)))
	}
	return decoded
}

func decode(t *testing.T, object string) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(object), &u.Object); err != nil {
		t.Fatal(err)
	}
	return &u
}

// withImages are the objects with the test bed's images.
func withImages(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	var replaced []*unstructured.Unstructured
	for _, o := range objects {
		content, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		replaced = append(replaced, decode(t, images(t, string(content))))
	}
	return replaced
}

// clean removes the shared namespaces when the test ends.
func clean(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		// The test's own context has ended.
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		// Whoever makes function pods goes before them.
		for _, namespace := range []string{system, functions} {
			s.RemoveNamespace(ctx, t, namespace)
		}
	})
}

// install applies objects, whose namespaces are first among them, and waits for their
// Deployments.
func install(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	clean(t)
	ctx := suite.Context(t)
	s.Apply(ctx, t, false, withImages(t, objects)...)
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			s.AwaitRollout(ctx, t, o.GetNamespace(), o.GetName())
		}
	}
}
