// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Launch is the result of starting the wrapper server in a pod that mounts the wrapper server's image as a volume.
// It indicates whether the node supports image volumes.
type Launch int

const (
	// LaunchUnknown is the state of pods that have not started yet, and of pods without an image volume.
	LaunchUnknown Launch = iota
	// Launched is the state of a pod whose function container started. So the pod's node supports image volumes.
	Launched
	// LaunchFailed is the state of a pod whose container could not be created or started. The node may be unable to
	// mount images, or the function's image may be the cause.
	LaunchFailed
	// LaunchMissing is the state of a pod whose node did not mount the image, so that the wrapper server is missing.
	LaunchMissing
)

// LaunchOf determines whether a pod could start the wrapper server from an image volume. It returns LaunchUnknown
// for pods of users' templates.
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

// mountsLauncher reports whether a pod was built from the built-in template with an image volume. It checks the
// container's command and not the volume, because API servers that do not support image volumes drop the volume.
func mountsLauncher(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Annotations[AnnotationTemplateVersion], builtinVersion) &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return slices.Equal(c.Command, []string{mountedProgram})
		})
}
