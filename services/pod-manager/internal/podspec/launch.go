// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Launch is what a pod shows about the wrapper server that it mounts as an image.
type Launch int

const (
	// LaunchUnknown is a pod that has not come so far, or gets it in another way.
	LaunchUnknown Launch = iota
	// Launched is a pod whose node could mount it.
	Launched
	// LaunchFailed is a pod whose container could not be created or started. The node
	// may not be able to mount images, or the function's image may be the reason.
	LaunchFailed
	// LaunchMissing is a pod with nothing in the place of the wrapper server: the node
	// mounted something else.
	LaunchMissing
)

// LaunchOf returns what a pod of the built-in template shows.
func LaunchOf(pod *corev1.Pod) Launch {
	s := functionStatus(pod)
	if s == nil || !mountsLauncher(pod) {
		return LaunchUnknown
	}
	reason, message := "", ""
	switch {
	case s.State.Running != nil:
		return Launched
	case s.State.Waiting != nil:
		reason, message = s.State.Waiting.Reason, s.State.Waiting.Message
	case s.State.Terminated != nil:
		reason, message = s.State.Terminated.Reason, s.State.Terminated.Message
	}
	switch reason {
	case "CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun":
		if strings.Contains(message, mountedProgram) {
			return LaunchMissing
		}
		return LaunchFailed
	default:
		return LaunchUnknown
	}
}

// mountsLauncher reports whether a pod is one of the built-in template for image volumes. The
// volume may be missing: an API server without image volumes drops it.
func mountsLauncher(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Annotations[AnnotationTemplateVersion], builtinVersion) &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return slices.Equal(c.Command, []string{mountedProgram})
		})
}
