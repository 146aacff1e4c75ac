// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// PodStatus is how a pod is.
type PodStatus struct {
	// Phase is the step that it is at on its way to readiness: creating until it was first
	// looked at, scheduling until it has a node, pulling while the node prepares it (volumes,
	// network, images and init containers; Kubernetes does not say which of them takes the
	// time), starting once its function container was made, connecting once that runs. A
	// container that is started again goes back one.
	Phase pool.Phase
	// Reason says more about the phase, or why the pod is being deleted, for people;
	// it may be empty.
	Reason string
	// IP is the pod's address; empty while it has none.
	IP string
	// Node is the name of its node; empty while it has none.
	Node string
	// Deleting is whether Kubernetes is ending the pod.
	Deleting bool
	// Problem is what keeps the pod from serving, in the words of kubelet and scheduler.
	Problem pool.Problem
}

// Status returns how pod is.
func Status(pod *corev1.Pod) PodStatus {
	status := PodStatus{IP: pod.Status.PodIP, Node: pod.Spec.NodeName, Deleting: pod.DeletionTimestamp != nil}
	status.Phase, status.Reason = phase(pod)
	if c := condition(pod, corev1.DisruptionTarget); c != nil && status.Deleting {
		status.Reason = join(c.Reason, c.Message)
	}
	if p := failure(pod); p != nil {
		status.Problem = *p
	}
	return status
}

// phase returns a pod's phase and what is known about it.
func phase(pod *corev1.Pod) (pool.Phase, string) {
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

// functionStatus returns the status of the function container; nil if there is none.
func functionStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == ContainerName })
	if i < 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[i]
}

// schedulingReason is why a pod has no node.
func schedulingReason(pod *corev1.Pod) string {
	if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return join(c.Reason, c.Message)
	}
	return ""
}

// preparingReason is what the node does before it makes the function container.
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

// containerReason is what a container is at.
func containerReason(kind string, s corev1.ContainerStatus) string {
	switch {
	case s.State.Waiting != nil:
		return fmt.Sprintf("%s %q: %s", kind, s.Name, join(s.State.Waiting.Reason, s.State.Waiting.Message))
	case s.State.Running != nil:
		return fmt.Sprintf("%s %q is running", kind, s.Name)
	}
	return ""
}

// condition returns a pod's condition; nil if it does not have it.
func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}
