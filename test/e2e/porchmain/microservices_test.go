// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porchmain_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// services has Porch's objects configure the services of microservices mode: the pod-manager watches them, and gateways
// get the part for local binaries from it.
func services(t *testing.T) {
	t.Parallel()
	p := place{"porch-system", "porch-fn-system", "pod-manager"}
	began := p.install(t, microservices(t))
	registry := s.Registry(t, "open").Host
	inPod := registry + "/krm-functions-catalog/set-namespace:v0.4.5"

	t.Run("binary", func(t *testing.T) { p.binary(suite.Context(t), t, "/var/run/ko/functions/set-namespace") })
	t.Run("reports", func(t *testing.T) { p.reports(suite.Context(t), t) })
	t.Run("deletion", func(t *testing.T) { p.deletion(suite.Context(t), t) })
	t.Run("pods", func(t *testing.T) { p.shapes(suite.Context(t), t, registry, inPod) })
	t.Run("a change", func(t *testing.T) { p.changesAPod(suite.Context(t), t, inPod) })
	t.Run("numbers", func(t *testing.T) { p.numbers(suite.Context(t), t, registry) })
	t.Run("finalizer", func(t *testing.T) { p.finalizer(suite.Context(t), t) })
	p.neverRefused(t, began)
}

// microservices returns the overlay that docs/replacing-porch.md describes, with two pod-managers: a
// gateway reports to one of them.
func microservices(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	found := s.OnTheBed(t, suite.Build(t, "../../../deploy/overlays/porch-microservices"))
	for _, o := range found {
		if o.GetKind() == "Deployment" && o.GetName() == "pod-manager" {
			if err := unstructured.SetNestedField(o.Object, int64(2), "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
		}
	}
	account := &unstructured.Unstructured{}
	account.SetAPIVersion("v1")
	account.SetKind("ServiceAccount")
	account.SetNamespace("porch-fn-system")
	account.SetName("functions")
	own := func(document string) string { return s.OwnImages(t, suite.Current, document) }
	return slices.Concat(suite.Namespaces(t), suite.Rewrite(t, found, own), []*unstructured.Unstructured{account})
}

// reports has a gateway find a binary missing: its reason is in the status, and stays there when a
// pod-manager without a gateway looks at the object.
func (p place) reports(ctx context.Context, t *testing.T) {
	p.create(ctx, t, "missing", `{"image": "missing", "binaryExecutor": {"tags": ["v1"], "path": "missing"}}`)
	p.awaitError(ctx, t, "missing", "function-runner: gateway: spec.binaryExecutor.path is not in ")
	p.create(ctx, t, "other", `{"image": "other", "podExecutor": {}}`)
	p.awaitApplied(ctx, t, "other", 1)
	if observed, text := p.status(ctx, t, "missing"); observed != 0 || text == "" {
		t.Errorf("the status is %d %q", observed, text)
	}
	p.patch(ctx, t, "missing", `{"spec": {"binaryExecutor": {"path": "starlark"}}}`)
}

// deletion deletes a FunctionConfig: the gateway runs its binary no longer.
func (p place) deletion(ctx context.Context, t *testing.T) {
	if err := p.configs().Delete(ctx, "binary", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	conn := p.connect(ctx, t)
	suite.Until(ctx, t, "the binary is not used", func() (bool, string) {
		err := suite.SetNamespace(ctx, conn, "registry.invalid/moved/set-namespace:v9.9.8", grpc.WaitForReady(true))
		return err != nil, "it is"
	})
}

// changesAPod changes the variables of pods.
func (p place) changesAPod(ctx context.Context, t *testing.T, image string) {
	p.patch(ctx, t, "pods",
		`{"spec": {"podExecutor": {"templateOverrides": {"container": {"env": [{"name": "LEVEL", "value": "second"}]}}}}}`)
	p.pod(ctx, t, image, "the changed variable",
		func(pod corev1.Pod) bool { return variable(pod.Spec.Containers[0], "LEVEL") == "second" })
}
