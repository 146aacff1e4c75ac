// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestMutualTLSArrivesUnderLoad changes a system to mutual TLS and back, by the steps of deploy/README.md,
// under callers. In between, other pods get no answer of pod-manager and image-resolver.
func TestMutualTLSArrivesUnderLoad(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	at := aside("mutual-tls")
	system := func(components ...string) []*unstructured.Unstructured {
		dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/microservices", components...)
		return s.OnTheBed(t, suite.Build(t, dir))
	}
	plain, permissive, strict := system(), system("mutual-tls", "mutual-tls-permissive"), system("mutual-tls")
	at.install(t, plain)
	for _, image := range []string{setNamespace, inPod(t)} {
		at.evaluates(t, image)
	}
	evaluations, err := at.underLoad(t, func() {
		at.replace(t, permissive)
		at.replace(t, strict)
		at.strangersGetNothing(t)
		at.replace(t, permissive)
		at.replace(t, plain)
	})
	t.Logf("%d evaluations", evaluations)
	if err != nil {
		t.Errorf("a caller failed: %v", err)
	}
}

// strangersGetNothing calls each replica of pod-manager and image-resolver without a certificate.
func (p place) strangersGetNothing(t *testing.T) {
	t.Helper()
	for app, call := range map[string]struct {
		port, method string
		req, resp    any
	}{
		"pod-manager": {
			":9448", "/functionrunner.podmanager.v1.PodManagerService/ListPools",
			&podmanagerv1.ListPoolsRequest{}, &podmanagerv1.ListPoolsResponse{},
		},
		"image-resolver": {
			":9449", "/functionrunner.imageresolver.v1.ImageResolverService/ResolveImage",
			&imageresolverv1.ResolveImageRequest{}, &imageresolverv1.ResolveImageResponse{},
		},
	} {
		ctx := suite.Context(t)
		pods, err := s.Client.CoreV1().Pods(p.system).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			t.Fatal(err)
		}
		called := 0
		for i := range pods.Items {
			if !suite.Ready(&pods.Items[i]) || pods.Items[i].DeletionTimestamp != nil {
				continue // it may be a permissive one, which drains
			}
			called++
			conn := suite.Connect(t, pods.Items[i].Status.PodIP+call.port)
			if err := conn.Invoke(ctx, call.method, call.req, call.resp); status.Code(err) != codes.Unauthenticated {
				t.Errorf("a client of %s without a certificate gets %v", app, err)
			}
		}
		if called == 0 {
			t.Errorf("no pod of %s is ready", app)
		}
	}
}
