package suite

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBarePodAsksNoRegistry is about a default: of a tag that moves, a registry is asked
// at each start.
func TestBarePodAsksNoRegistry(t *testing.T) {
	s := &Suite{Toolbox: "registry.example/toolbox:latest"}
	if got := s.BarePod("bare").Spec.Containers[0].ImagePullPolicy; got != corev1.PullIfNotPresent {
		t.Errorf("the image is pulled %q, want only if it is not there", got)
	}
}
