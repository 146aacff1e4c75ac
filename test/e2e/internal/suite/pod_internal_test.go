// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBarePodAsksNoRegistry tests a default: for a tag that moves, nodes ask the registry at each
// start.
func TestBarePodAsksNoRegistry(t *testing.T) {
	s := &Suite{Toolbox: "registry.example/toolbox:latest"}
	if got := s.BarePod("bare").Spec.Containers[0].ImagePullPolicy; got != corev1.PullIfNotPresent {
		t.Errorf("the image is pulled %q, want only if it is not there", got)
	}
}
