// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Launch is the state of a wrapper server that a pod mounts as an image.
type Launch int

const (
	// LaunchUnknown is the state of pods that have not started, or use another launcher.
	LaunchUnknown Launch = iota
	// Launched is the state of a pod whose node mounted the image.
	Launched
	// LaunchFailed is the state of a pod whose container could not be created or started. The node may be unable to
	// mount images, or the function's image may be the cause.
	LaunchFailed
	// LaunchMissing is the state of a pod without the wrapper server: the node mounted something else.
	LaunchMissing
)

// LaunchOf returns the state of a pod of the built-in template.
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

// mountsLauncher reports whether a pod uses the built-in template for image volumes. The volume may be missing,
// because API servers without image volumes drop it.
func mountsLauncher(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Annotations[AnnotationTemplateVersion], builtinVersion) &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return slices.Equal(c.Command, []string{mountedProgram})
		})
}
