// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porchmain_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// place is where the function runner and its function pods are.
type place struct {
	system, functions string // namespaces
	account           string // of the program that manages pods
}

var (
	s *suite.Suite

	configs = schema.GroupVersionResource{
		Group: "config.porch.kpt.dev", Version: "v1alpha1", Resource: "functionconfigs",
	}
	serviceTemplates = configs.GroupVersion().WithResource("servicetemplates")
	podTemplates     = schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
	definitions      = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

// objects returns the objects of a file, with the test bed's images and registry.
func objects(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := s.OwnImages(t, suite.Current, strings.ReplaceAll(string(content), "REGISTRY", s.Registry(t, "open").Host))
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		all = append(all, suite.Decode(t, document))
	}
	return all
}

// define installs the definitions of Porch's objects, and removes them when the test ends.
func define(t *testing.T) {
	t.Helper()
	all := objects(t, "crds")
	t.Cleanup(func() {
		ctx := suite.CleanupContext(t)
		for _, definition := range all {
			removeDefinition(ctx, t, definition.GetName())
		}
	})
	ctx := suite.Context(t)
	s.Apply(ctx, t, false, all...)
	suite.Until(ctx, t, "FunctionConfigs are served", func() (bool, string) {
		_, err := s.Dynamic().Resource(configs).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, "not served"
	})
}

// install installs the objects of a function runner, and removes them when the test ends. It returns when it began:
// other tests use the same accounts.
func (p place) install(t *testing.T, runner []*unstructured.Unstructured) (began time.Time) {
	t.Helper()
	began = time.Now()
	t.Cleanup(func() {
		s.RemoveNamespace(t, p.system)
		s.RemoveNamespace(t, p.functions)
	})
	s.Install(suite.Context(t), t, runner...)
	return began
}

// removeDefinition removes a definition, and returns when it is gone: one that ends cannot be applied.
func removeDefinition(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	if err := s.Dynamic().Resource(definitions).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	suite.Until(ctx, t, "the definition "+name+" is gone", func() (bool, string) {
		_, err := s.Dynamic().Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), "it is there"
	})
}

// neverRefused checks that the function runner had all the rights that it needed since a time.
func (p place) neverRefused(t *testing.T, since time.Time) {
	t.Helper()
	if leases := p.refusedLeases(t, since); leases > 0 {
		t.Errorf("the Role does not suffice: %d requests for Leases", leases)
	}
}

// refusedOnlyLeases checks that the Role of Porch's main branch suffices. It has no rights on Leases:
// each replica asks for its own now and then, and acts without membership.
func (p place) refusedOnlyLeases(t *testing.T, since time.Time) {
	t.Helper()
	// Of all replicas that the tests start, each with one at once, and then more and more seldom.
	const most = 60
	if leases := p.refusedLeases(t, since); leases == 0 || leases > most {
		t.Errorf("Leases were refused %d times, want few", leases)
	}
}

// refusedLeases returns how many requests to read Leases were refused since a time, and has the test fail
// for any other request that was.
func (p place) refusedLeases(t *testing.T, since time.Time) (leases int) {
	t.Helper()
	for _, r := range s.Requests(t, p.system, p.account, since) {
		switch {
		case r.Response.Code != http.StatusForbidden:
		case r.Object.Resource == "leases" && r.Verb == "get":
			leases++
		default:
			t.Errorf("the Role does not suffice: %s %s", r.Verb, r.URI)
		}
	}
	return leases
}
