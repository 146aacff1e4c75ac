// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porch_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/cosigned"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// pods is the repository of the images that run in pods; empty for the catalog's copy in the open registry.
var pods string

// useMicroservices installs our services in place of function-runner, under the Service that Porch calls, with all
// that decides who may call and what may run: mutual TLS, the port for callers with identities, and a policy that
// requires signatures of images in pods.
func useMicroservices(t *testing.T) {
	t.Helper()
	kubectl(t, "-n", system, "delete", "deployment", "function-runner", "--cascade=foreground")
	key := signedImages(t)
	dir := manifests.Combine(t, "../../../deploy", "overlays/porch-microservices", "callers")
	objects := s.OnTheBed(t, suite.Build(t, dir))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == "gateway" {
			decide(t, o)
		}
	}
	objects = append(objects, key.Policy(t, system, "policy", pods+"/**",
		`{name: binaries, images: ['ghcr.io/kptdev/**'], when: 'evaluator == "exec"', action: allow}`))
	own := func(document string) string { return s.OwnImages(t, suite.Current, document) }
	s.Install(suite.Context(t), t, suite.Rewrite(t, objects, own)...)
}

// decide gives a gateway a policy.
func decide(t *testing.T, gateway *unstructured.Unstructured) {
	t.Helper()
	suite.SetVariable(t, gateway, "FNR_POLICY_FILE", "/etc/function-runner/policy.yaml")
	suite.Mount(t, gateway, "policy", "/etc/function-runner",
		map[string]any{"configMap": map[string]any{"name": "policy"}})
}

// signedImages copies the catalog's functions to a repository of the open registry, where pods run them from now on,
// signs all but one, and returns the key.
func signedImages(t *testing.T) cosigned.Key {
	t.Helper()
	key, open := cosigned.NewKey(t), s.Registry(t, "open").Host
	pods = open + "/e2e/" + strings.ToLower(rand.Text())
	for _, image := range []string{"set-namespace:v0.4.5", "apply-setters:v0.2.2", "starlark:v0.5.5"} {
		digest := cosigned.Push(t, open+"/krm-functions-catalog/"+image, pods+"/"+image, "signed")
		name, _, _ := strings.Cut(image, ":")
		key.Sign(t, pods+"/"+name, digest, digest)
	}
	cosigned.Push(t, open+"/krm-functions-catalog/set-namespace:v0.4.5", pods+"/unsigned:v1", "unsigned")
	return key
}

// decides has Porch render a package whose function is not signed.
func decides(t *testing.T) {
	register(t, "decided")
	d := newDraft(t, "decided", "shop")
	d.mutators = []function{setNamespace(inPod(t, "unsigned:v1"))}
	if out, err := d.push(t); err == nil || !strings.Contains(out, "has to be signed by release. Found: no signature") {
		t.Errorf("with an image that is not signed, Porch answers (%v)\n%s", err, out)
	}
}
