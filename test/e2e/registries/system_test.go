//go:build e2e

package registries_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// root is the repository's, from here.
const root = "../../.."

// The Secrets of the manifests.
const (
	authSecret = "auth-secret"
	tlsSecret  = "registry-tls"
)

// mode is a way to deploy the system with private registries.
type mode struct {
	name, overlay string
	// resolver is the Deployment that asks registries, and insecure the variable that
	// names those without TLS.
	resolver, insecure string
	// account is whose rights the program has that manages pods.
	account string
}

var modes = []mode{
	{"microservices", "dev", "image-resolver", "FNR_INSECURE_REGISTRIES", "pod-manager"},
	{"function-runner", "dev-function-runner", "function-runner", "FNR_IMAGE_RESOLVER_INSECURE_REGISTRIES", "porch-fn-runner"},
}

// system is the whole system in namespaces of its own.
type system struct {
	// services is the namespace of the services, and functions that of function pods.
	services, functions string
}

// deploy deploys the manifests. The Secrets have these contents at first.
func deploy(t *testing.T, m mode, secrets ...*corev1.Secret) *system {
	t.Helper()
	sys := &system{services: s.Namespace(t), functions: s.Namespace(t)}
	for _, secret := range secrets {
		sys.put(t, secret)
	}
	ctx := suite.Context(t)
	objects := sys.manifests(t, m)
	s.Apply(ctx, t, false, objects...)
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			s.AwaitRollout(ctx, t, o.GetNamespace(), o.GetName())
		}
	}
	return sys
}

// manifests are the objects of a mode, with the test bed's images and registry, and in
// the namespaces of the test: others use the usual ones.
func (sys *system) manifests(t *testing.T, m mode) []*unstructured.Unstructured {
	t.Helper()
	built, err := manifests.Build(kustomization(t, m))
	if err != nil {
		t.Fatal(err)
	}
	rename := strings.NewReplacer("porch-system", sys.services, "porch-fn-system", sys.functions)
	var objects []*unstructured.Unstructured
	for _, object := range built {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(bedImages(t, rename.Replace(string(object)))), &u.Object); err != nil {
			t.Fatal(err)
		}
		if u.GetKind() == "Deployment" && u.GetName() == m.resolver {
			setVariable(t, &u, m.insecure, registry(t, "private").Host)
		}
		objects = append(objects, &u)
	}
	return objects
}

// kustomization makes one of the mode's overlay and the component for private registries.
func kustomization(t *testing.T, m mode) string {
	t.Helper()
	dir := t.TempDir()
	manifests, err := filepath.Abs(filepath.Join(root, "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	up, err := filepath.Rel(dir, manifests)
	if err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf("resources: [%s/overlays/%s]\ncomponents: [%s/components/private-registry]\n", up, m.overlay, up)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// published are the images in manifests.
var published = regexp.MustCompile(`ghcr\.io/krm-function-runner/([a-z-]+):latest`)

// bedImages replaces published images by those of the test bed.
func bedImages(t *testing.T, content string) string {
	t.Helper()
	return published.ReplaceAllStringFunc(content, func(image string) string {
		ours := registry(t, "open").Host + "/programs/" + published.FindStringSubmatch(image)[1]
		return ours + "@" + digest(t, ours+":latest")
	})
}

// setVariable sets a variable of a Deployment's container.
func setVariable(t *testing.T, deployment *unstructured.Unstructured, name, value string) {
	t.Helper()
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	container := containers[0].(map[string]any)
	container["env"] = append(slices.Clone(container["env"].([]any)), map[string]any{"name": name, "value": value})
	if err := unstructured.SetNestedSlice(deployment.Object, containers, path...); err != nil {
		t.Fatal(err)
	}
}

// address is where callers call.
func (sys *system) address(t *testing.T, service, port string) string {
	t.Helper()
	found, err := s.Client.CoreV1().Services(sys.services).Get(suite.Context(t), service, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Spec.ClusterIP + ":" + port
}
