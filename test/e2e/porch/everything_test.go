// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porch_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/imagecopy"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// pods is the repository of the images that run in pods; empty for the catalog's copy in the open registry.
var pods string

// useMicroservices installs our services in place of function-runner, under the Service that Porch calls, with all
// that decides who may call and what may run: mutual TLS, the port for callers with identities, and a list of
// allowed images.
func useMicroservices(t *testing.T) {
	t.Helper()
	kubectl(t, "-n", system, "delete", "deployment", "function-runner", "--cascade=foreground")
	copyImages(t)
	dir := manifests.Combine(t, "../../../deploy", "overlays/porch-microservices", "callers")
	objects := s.OnTheBed(t, suite.Build(t, dir))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == "gateway" {
			decide(t, o)
		}
	}
	own := func(document string) string { return s.OwnImages(t, suite.Current, document) }
	s.Install(suite.Context(t), t, suite.Rewrite(t, objects, own)...)
}

// decide configures the allowed images of a gateway.
func decide(t *testing.T, gateway *unstructured.Unstructured) {
	t.Helper()
	suite.SetVariable(t, gateway, "FNR_POLICY_ALLOW", "ghcr.io/kptdev/**,"+pods+"/**")
	suite.SetVariable(t, gateway, "FNR_POLICY_DENY", "not-reviewed="+pods+"/rejected")
}

// copyImages copies the catalog's functions to a repository of the open registry, where pods run them from now on.
func copyImages(t *testing.T) {
	t.Helper()
	open := s.Registry(t, "open").Host
	pods = open + "/e2e/" + strings.ToLower(rand.Text())
	for _, image := range []string{"set-namespace:v0.4.5", "apply-setters:v0.2.2", "starlark:v0.5.5"} {
		imagecopy.Push(t, open+"/krm-functions-catalog/"+image, pods+"/"+image, imagecopy.Label("copied"))
	}
	imagecopy.Push(t, open+"/krm-functions-catalog/set-namespace:v0.4.5", pods+"/rejected:v1", imagecopy.Label("rejected"))
}

// decides has Porch render a package whose function is on the deny list.
func decides(t *testing.T) {
	register(t, "decided")
	d := newDraft(t, "decided", "shop")
	d.mutators = []function{setNamespace(inPod(t, "rejected:v1"))}
	if out, err := d.push(t); err == nil || !strings.Contains(out, `rejected by the rule "not-reviewed"`) {
		t.Errorf("with an image on the deny list, Porch answers (%v)\n%s", err, out)
	}
}
