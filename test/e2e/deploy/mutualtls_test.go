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
