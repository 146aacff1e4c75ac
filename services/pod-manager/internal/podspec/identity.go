// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identity is what a pod runs and where it belongs.
type Identity struct {
	// ID is the pod's id: its label, and its Service's name.
	ID string
	// Reference and Digest are those of [Function].
	Reference, Digest string
	// Slot is the place in the pool, from one.
	Slot int
	// TemplateVersion is empty if the pod has none.
	TemplateVersion string
	// SettingsVersion is empty if the pod has none.
	SettingsVersion string
	// ReclaimAfter is when the pod may be collected; zero if it does not say, or
	// not readably: it is to get a new one then.
	ReclaimAfter time.Time
}

// Identify returns what pod is; false if it is not one of ours, as pods of Porch's
// own function runner are not, which have the same label.
func Identify(pod *corev1.Pod) (Identity, bool) {
	identity, ok := identify(pod.ObjectMeta)
	identity.TemplateVersion = pod.Annotations[AnnotationTemplateVersion]
	identity.SettingsVersion = pod.Annotations[AnnotationSettingsVersion]
	identity.ReclaimAfter = reclaimAfter(pod.Annotations[AnnotationReclaimAfter])
	return identity, ok
}

func identify(meta metav1.ObjectMeta) (Identity, bool) {
	slot, err := strconv.Atoi(meta.Annotations[AnnotationSlot])
	identity := Identity{
		ID:        meta.Labels[LabelID],
		Reference: meta.Annotations[AnnotationReference],
		Digest:    meta.Annotations[AnnotationDigest],
		Slot:      slot,
	}
	return identity, err == nil && slot > 0 && identity.ID != "" && identity.Reference != "" && identity.Digest != ""
}

// endOfTime is the year 10000: a later value is a mistake, such as milliseconds.
const endOfTime = 253402300800

// reclaimAfter reads Unix seconds; zero if they are none.
func reclaimAfter(text string) time.Time {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 || seconds >= endOfTime {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
