package podspec

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Identity is what a pod runs and where it belongs.
type Identity struct {
	// ID is the pod's id: its label, and its Service's name.
	ID string
	// Reference and Digest are those of [Function].
	Reference, Digest string
	// Slot is the place in the pool, from one.
	Slot int
	// TemplateVersion is empty if the pod does not say.
	TemplateVersion string
	// ReclaimAfter is when the pod may be collected; zero if it does not say, or
	// not readably: it is to get a new one then.
	ReclaimAfter time.Time
}

// Identify returns what pod is; false if it is not one of ours, as pods of Porch's
// own function runner are not, which have the same label.
func Identify(_ *corev1.Pod) (Identity, bool) { return Identity{}, false }

// IdentifyService returns the id of the pod that a Service belongs to; false if it is
// not one of ours.
func IdentifyService(_ *corev1.Service) (id string, ok bool) { return "", false }
