// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Identify returns the state that a pod's metadata contains, such as the function and the slot. It returns false for
// pods of other programs that use the same label, such as Porch's own function runner. Times are in the API server's
// clock. If the expiry is missing or invalid, it is zero, and the pool sets a new expiry.
func Identify(pod *corev1.Pod) (pool.Observation, bool) {
	slot, err := strconv.Atoi(pod.Annotations[AnnotationSlot])
	o := pool.Observation{
		Name: pod.Name, UID: string(pod.UID), ResourceVersion: pod.ResourceVersion, Slot: slot,
		Function: pool.Function{
			Reference: pod.Annotations[AnnotationReference],
			Digest:    pod.Annotations[AnnotationDigest],
		},
		TemplateVersion: pod.Annotations[AnnotationTemplateVersion],
		SettingsVersion: pod.Annotations[AnnotationSettingsVersion],
		Created:         pod.CreationTimestamp.Time,
		ReclaimAfter:    reclaimAfter(pod.Annotations[AnnotationReclaimAfter]),
		Identity:        identityOf(pod),
		Deleting:        pod.DeletionTimestamp != nil,
	}
	o.ByTag = !strings.HasSuffix(functionImage(pod), "@"+o.Function.Digest)
	ours := err == nil && slot > 0 && pod.Labels[LabelID] != "" && o.Function.Reference != "" && o.Function.Digest != ""
	return o, ours
}

// Observe returns the state of a pod for the pool, without the pod's address. It returns false for pods of other
// programs, see [Identify].
func Observe(pod *corev1.Pod) (pool.Observation, bool) {
	o, ours := Identify(pod)
	if !ours {
		return pool.Observation{}, false
	}
	o.Node = pod.Spec.NodeName
	o.Ready = isReady(pod)
	o.Phase, o.Reason = phaseOf(pod)
	if c := findCondition(pod, corev1.DisruptionTarget); c != nil && o.Deleting {
		o.Reason = joinTexts(c.Reason, c.Message)
	}
	if p := findProblem(pod); p != nil {
		o.Problem = *p
	}
	return o, true
}

func functionImage(pod *corev1.Pod) string {
	if i := functionIndex(pod); i >= 0 {
		return pod.Spec.Containers[i].Image
	}
	return ""
}

func isReady(pod *corev1.Pod) bool {
	c := findCondition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// endOfTime is the start of the year 10000 in Unix seconds. A later expiry is invalid, because it is likely a
// mistake, such as a value in milliseconds.
const endOfTime = 253402300800

// reclaimAfter parses a pod's expiry, in Unix seconds. It returns the zero time if the text is invalid.
func reclaimAfter(text string) time.Time {
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 || seconds >= endOfTime {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// phaseOf returns a pod's phase, and the reason for it if known. The phase is "creating" until the scheduler handles
// the pod, and "scheduling" until the pod has a node. It is "starting" once the function container exists, and
// "connecting" while this container runs. "pulling" includes volumes, network, images and init containers, because
// Kubernetes does not report which of them is slow.
func phaseOf(pod *corev1.Pod) (pool.Phase, string) {
	function := functionStatus(pod)
	switch {
	case pod.Spec.NodeName == "" && len(pod.Status.Conditions) == 0:
		return pool.PhaseCreating, ""
	case pod.Spec.NodeName == "":
		return pool.PhaseScheduling, schedulingReason(pod)
	case function != nil && function.State.Running != nil && pod.Status.PodIP != "":
		return pool.PhaseConnecting, ""
	case function != nil && (function.ContainerID != "" || function.State.Running != nil):
		return pool.PhaseStarting, containerReason("container", *function)
	}
	return pool.PhasePulling, preparingReason(pod)
}

// functionStatus returns the status of the function container, or nil if the kubelet has not reported it yet.
func functionStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == ContainerName {
			return s
		}
	}
	return nil
}

// schedulingReason returns the scheduler's explanation for a pod without a node, or an empty text.
func schedulingReason(pod *corev1.Pod) string {
	if c := findCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return joinTexts(c.Reason, c.Message)
	}
	return ""
}

// preparingReason describes for users the container that the pod's node is preparing. This is the first unfinished init
// container, or else the function container.
func preparingReason(pod *corev1.Pod) string {
	for _, s := range pod.Status.InitContainerStatuses {
		if s.State.Terminated == nil {
			return containerReason("init container", s)
		}
	}
	if function := functionStatus(pod); function != nil {
		return containerReason("container", *function)
	}
	return ""
}

// containerReason describes a waiting or running container for users. kind is a word such as "init container".
func containerReason(kind string, s corev1.ContainerStatus) string {
	switch {
	case s.State.Waiting != nil:
		return fmt.Sprintf("%s %q: %s", kind, s.Name, joinTexts(s.State.Waiting.Reason, s.State.Waiting.Message))
	case s.State.Running != nil:
		return fmt.Sprintf("%s %q is running", kind, s.Name)
	}
	return ""
}

// findCondition returns a condition of a pod, or nil.
func findCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

// Launch is the result of starting the wrapper server from an image volume. It shows if the pod's node supports
// image volumes.
type Launch int

const (
	// LaunchUnknown is the result for pods that have not started yet, and for pods without an image volume.
	LaunchUnknown Launch = iota
	// Launched is the result for a pod whose function container started. Its node supports image volumes.
	Launched
	// LaunchFailed is the result for a pod whose container could not be created or started. Either the node cannot mount
	// images, or the function's image is the cause.
	LaunchFailed
	// LaunchMissing is the result for a pod without the wrapper server, because its node did not mount the image.
	LaunchMissing
)

// LaunchOf determines if a pod could start the wrapper server from an image volume. It returns LaunchUnknown for pods
// of users' templates.
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
// container's command instead of the volume, because API servers without support for image volumes drop the volume.
func mountsLauncher(pod *corev1.Pod) bool {
	return strings.HasPrefix(pod.Annotations[AnnotationTemplateVersion], builtinVersion) &&
		slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return slices.Equal(c.Command, []string{mountedProgram})
		})
}
