// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestMutualTLSArrivesUnderLoad changes a system to mutual TLS and back, by the steps of deploy/README.md,
// under callers. In between, attackers get no answer of its programs. (TestCallersProveWhoTheyAre has all ports.)
func TestMutualTLSArrivesUnderLoad(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	for mode, component := range map[string]string{"microservices": "mutual-tls", "function-runner": "mutual-tls-pods"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			mutualTLSArrives(t, mode, component)
		})
	}
}

func mutualTLSArrives(t *testing.T, mode, component string) {
	t.Helper()
	at := aside("mutual-tls-" + mode)
	system := func(components ...string) []*unstructured.Unstructured {
		dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/"+mode, components...)
		return s.OnTheBed(t, suite.Build(t, dir))
	}
	plain, permissive, strict := system(), system(component, "mutual-tls-permissive"), system(component)
	at.install(t, plain)
	for _, image := range []string{setNamespace, inPod(t)} {
		at.evaluates(t, image)
	}
	evaluations, err := at.underLoad(t, func() {
		at.replace(t, permissive)
		at.replace(t, strict)
		at.strangersGetNothing(t)
		at.replace(t, permissive)
		at.awaitPods(t, false)
		at.replace(t, plain)
	})
	t.Logf("%d evaluations", evaluations)
	if err != nil {
		t.Errorf("a caller failed: %v", err)
	}
}
