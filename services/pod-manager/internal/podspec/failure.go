// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// outOfMemory is the kubelet's reason for a container that the kernel ended for memory.
const outOfMemory = "OOMKilled"

// problem returns a problem in the words of kubelet and scheduler: one word, such as
// "ErrImagePull", and a text of one line, which may be empty.
func problem(kind pool.ProblemKind, word, text string) *pool.Problem {
	return &pool.Problem{Kind: kind, Reason: join(word, text)}
}

// kindOf is the kind of a problem: permanent if another pod like this one would fail in the
// same way, until something is changed, and ended if this pod does not serve any more.
func kindOf(permanent, ended bool) pool.ProblemKind {
	switch {
	case permanent:
		return pool.Fatal
	case ended:
		return pool.Lost
	default:
		return pool.Stuck
	}
}

// failure finds what keeps a pod from serving: the pod as a whole, what comes before
// the function container, that container, or the lack of a node. Containers beside
// it do not count: whether the function can be called shows without them.
func failure(pod *corev1.Pod) *pool.Problem {
	if f := podFailure(pod); f != nil {
		return f
	}
	if pod.DeletionTimestamp != nil {
		return nil // what becomes of its containers now is part of that
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if f := initFailure(pod, s); f != nil {
			return f
		}
	}
	if s := functionStatus(pod); s != nil {
		if f := functionFailure(*s); f != nil {
			return f
		}
	}
	if f := finished(pod); f != nil {
		return f
	}
	return unschedulable(pod)
}

// podFailure is what ended the pod as a whole, such as an eviction or the loss of its
// node. It does not predict the next pod's fate.
func podFailure(pod *corev1.Pod) *pool.Problem {
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodUnknown
	if pod.Status.Reason == "NodeLost" || over && pod.Status.Reason != "" {
		return problem(pool.Lost, pod.Status.Reason, pod.Status.Message)
	}
	return nil
}

// finished is the failure of a pod that came to its end without a word about it.
func finished(pod *corev1.Pod) *pool.Problem {
	switch pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown:
		if c := condition(pod, corev1.DisruptionTarget); c != nil {
			return problem(pool.Lost, c.Reason, c.Message)
		}
		return problem(pool.Lost, string(pod.Status.Phase), "")
	default:
		return nil
	}
}

// unschedulable is why the scheduler finds no node. Capacity may appear: others end, and
// autoscalers bring nodes.
func unschedulable(pod *corev1.Pod) *pool.Problem {
	c := condition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason == corev1.PodReasonSchedulingGated ||
		pod.Spec.NodeName != "" {
		return nil
	}
	return problem(pool.Held, cmp.Or(c.Reason, corev1.PodReasonUnschedulable), c.Message)
}

// initFailure is what keeps an init container from coming to its end.
func initFailure(pod *corev1.Pod, s corev1.ContainerStatus) *pool.Problem {
	kind := fmt.Sprintf("init container %q", s.Name)
	if s.State.Waiting != nil {
		return waiting(kind, s)
	}
	t := s.State.Terminated
	if t == nil || t.ExitCode == 0 || sidecar(pod, s.Name) {
		return nil
	}
	never := pod.Spec.RestartPolicy == corev1.RestartPolicyNever
	return problem(kindOf(ownFault(t), never), cmp.Or(t.Reason, "Error"), ended(kind, t))
}

// sidecar reports whether an init container runs beside the others, and is restarted however
// it ends.
func sidecar(pod *corev1.Pod, name string) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// startup is how soon after its start a container that ends never served: its next
// start will end in the same way.
const startup = 10 * time.Second

// functionFailure returns what keeps the function container from serving. An ended container
// counts as lost even if the kubelet restarts it: its evaluations are lost, and another pod may
// be ready sooner. A container that was killed for memory may run again before its end was
// observed: its callers still get the out-of-memory error.
func functionFailure(s corev1.ContainerStatus) *pool.Problem {
	kind := fmt.Sprintf("container %q", s.Name)
	last := s.LastTerminationState.Terminated
	starved := last != nil && last.Reason == outOfMemory
	if s.State.Waiting != nil {
		p := waiting(kind, s)
		if s.State.Waiting.Reason == crashLoop { // it has ended
			p.Kind, p.OutOfMemory = kindOf(p.Kind == pool.Fatal, true), starved
		}
		return p
	}
	t := s.State.Terminated
	if t == nil && starved {
		t = last
	}
	if t == nil {
		return nil
	}
	// The status of a container that could not be started has the year 1970.
	soon := t.StartedAt.Unix() <= 0 || t.FinishedAt.Sub(t.StartedAt.Time) < startup
	p := problem(kindOf(soon && ownFault(t), true), cmp.Or(t.Reason, "Terminated"), ended(kind, t))
	p.OutOfMemory = t.Reason == outOfMemory
	return p
}

const (
	exitKilled     = 128 + 9
	exitTerminated = 128 + 15
)

// ownFault reports whether a container ended by itself, rather than by being killed: by the
// kernel for memory, which depends on the data, or by another process. A start that the
// container runtime did not finish is no fault of the container's either.
func ownFault(t *corev1.ContainerStateTerminated) bool {
	return t.Reason != outOfMemory && t.ExitCode != exitKilled && t.ExitCode != exitTerminated && !interrupted(t)
}

// runtimeEnds are what containerd and CRI-O report of a start during which they, or the
// container's shim, were stopped.
var runtimeEnds = []string{"context canceled", "ttrpc: closed", "transport is closing", "connection refused"}

// interrupted reports whether a container did not start because the container runtime was stopped.
func interrupted(t *corev1.ContainerStateTerminated) bool {
	ends := func(text string) bool { return strings.Contains(t.Message, text) }
	return t.Reason == "StartError" && slices.ContainsFunc(runtimeEnds, ends)
}

// ended returns how a container ended, on one line.
func ended(kind string, t *corev1.ContainerStateTerminated) string {
	return join(fmt.Sprintf("%s ended with exit code %d", kind, t.ExitCode), t.Message)
}

// join puts two texts on one line; either may be empty.
func join(head, tail string) string {
	head, tail = oneLine(head), oneLine(tail)
	if head == "" || tail == "" {
		return head + tail
	}
	return head + ": " + tail
}

// oneLine puts a text on one line, as it is otherwise.
func oneLine(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return strings.TrimSpace(text)
	}
	var lines []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
