// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"path/filepath"
	"testing"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// TestMutualTLS installs systems with mutual TLS: attackers get no answer of their programs, while callers do.
// (TestCallersProveWhoTheyAre has all ports.)
func TestMutualTLS(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	for mode, component := range map[string]string{"microservices": "mutual-tls", "function-runner": "mutual-tls-pods"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			at := aside("mutual-tls-" + mode)
			dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/"+mode, component)
			at.install(t, s.OnTheBed(t, suite.Build(t, dir)))
			for _, image := range []string{setNamespace, inPod(t)} {
				at.evaluates(t, image)
			}
			evaluations, err := at.underLoad(t, func() { at.strangersGetNothing(t) })
			t.Logf("%d evaluations", evaluations)
			if err != nil {
				t.Errorf("a caller failed: %v", err)
			}
		})
	}
}
