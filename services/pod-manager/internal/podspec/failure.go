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

// outOfMemory is the reason in a container's status if the kernel killed the container because of its memory use.
const outOfMemory = "OOMKilled"

// newProblem returns a problem with a line of text for users. This line consists of a reason from Kubernetes, such as
// "ErrImagePull", and the message of Kubernetes, which may be empty.
func newProblem(kind pool.ProblemKind, word, text string) *pool.Problem {
	return &pool.Problem{Kind: kind, Reason: joinTexts(word, text)}
}

// kindOf returns the kind of a pod's problem. permanent is true if new pods would have the same problem until a user
// changes something. ended is true if this pod no longer serves.
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

// findProblem returns the problem that prevents a pod from serving, or nil. It checks only the init containers and the
// function container, because the function may work without other containers.
func findProblem(pod *corev1.Pod) *pool.Problem {
	if f := podFailure(pod); f != nil {
		return f
	}
	if pod.DeletionTimestamp != nil {
		return nil // the containers stop because of the deletion
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
	if f := finishedProblem(pod); f != nil {
		return f
	}
	return schedulingProblem(pod)
}

// podFailure returns the problem that ended the whole pod, such as an eviction or the loss of its node. The problem's
// kind is [pool.Lost], because a new pod may work.
func podFailure(pod *corev1.Pod) *pool.Problem {
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodUnknown
	if pod.Status.Reason == "NodeLost" || (over && pod.Status.Reason != "") {
		return newProblem(pool.Lost, pod.Status.Reason, pod.Status.Message)
	}
	return nil
}

// finishedProblem returns the problem of a pod that has ended, even if the pod's status contains no reason.
func finishedProblem(pod *corev1.Pod) *pool.Problem {
	switch pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown:
		if c := findCondition(pod, corev1.DisruptionTarget); c != nil {
			return newProblem(pool.Lost, c.Reason, c.Message)
		}
		return newProblem(pool.Lost, string(pod.Status.Phase), "")
	default:
		return nil
	}
}

// schedulingProblem returns the scheduler's reason if a pod has no node yet. The problem counts as temporary, because
// other pods may end, and an autoscaler may add nodes.
func schedulingProblem(pod *corev1.Pod) *pool.Problem {
	c := findCondition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason == corev1.PodReasonSchedulingGated ||
		pod.Spec.NodeName != "" {
		return nil
	}
	return newProblem(pool.Held, cmp.Or(c.Reason, corev1.PodReasonUnschedulable), c.Message)
}

// initFailure returns the problem that prevents an init container from completing.
func initFailure(pod *corev1.Pod, s corev1.ContainerStatus) *pool.Problem {
	kind := fmt.Sprintf("init container %q", s.Name)
	if s.State.Waiting != nil {
		return waitingProblem(kind, s)
	}
	t := s.State.Terminated
	if t == nil || t.ExitCode == 0 || isSidecar(pod, s.Name) {
		return nil
	}
	never := pod.Spec.RestartPolicy == corev1.RestartPolicyNever
	return newProblem(kindOf(ownFault(t), never), cmp.Or(t.Reason, "Error"), describeEnd(kind, t))
}

// isSidecar reports whether an init container is a sidecar, which runs next to the other containers and is always
// restarted.
func isSidecar(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// startup is the time within which the exit of a new container counts as a failed start. A failed start is permanent,
// because the container would fail in the same way at its next start.
const startup = 10 * time.Second

// functionFailure returns the problem that prevents the function container from serving. A terminated container counts
// as lost, even if the kubelet restarts it. Its evaluations are lost, and another pod may be ready sooner. A container
// that ran out of memory counts as lost even if it runs again, so that the callers of its evaluations get the
// out-of-memory error.
func functionFailure(s corev1.ContainerStatus) *pool.Problem {
	kind := fmt.Sprintf("container %q", s.Name)
	last := s.LastTerminationState.Terminated
	starved := last != nil && last.Reason == outOfMemory
	if s.State.Waiting != nil {
		p := waitingProblem(kind, s)
		if s.State.Waiting.Reason == crashLoop { // the container has terminated
			p.Kind = kindOf(p.Kind == pool.Fatal, true)
			p.OutOfMemory = starved
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
	// A container that could not be started has a start time in 1970. Its exit counts as a failed start.
	soon := t.StartedAt.Unix() <= 0 || t.FinishedAt.Sub(t.StartedAt.Time) < startup
	p := newProblem(kindOf(soon && ownFault(t), true), cmp.Or(t.Reason, "Terminated"), describeEnd(kind, t))
	p.OutOfMemory = t.Reason == outOfMemory
	return p
}

const (
	exitKilled     = 128 + 9
	exitTerminated = 128 + 15
)

// ownFault reports whether a container exited by itself, so that a new container may exit in the same way. It returns
// false if another process killed the container, or if the container runtime interrupted its start. It also returns
// false if the container ran out of memory, because this depends on the function's input.
func ownFault(t *corev1.ContainerStateTerminated) bool {
	return t.Reason != outOfMemory && t.ExitCode != exitKilled && t.ExitCode != exitTerminated && !startInterrupted(t)
}

// runtimeEnds contains parts of error messages of the container runtimes containerd and CRI-O. A message with such a
// part means that the runtime, or the container's shim, was stopped while it started the container.
var runtimeEnds = []string{"context canceled", "ttrpc: closed", "transport is closing", "connection refused"}

// startInterrupted reports whether a container failed to start because the container runtime was stopped.
func startInterrupted(t *corev1.ContainerStateTerminated) bool {
	ends := func(text string) bool { return strings.Contains(t.Message, text) }
	return t.Reason == "StartError" && slices.ContainsFunc(runtimeEnds, ends)
}

// describeEnd returns a line with the exit code and the message of a terminated container.
func describeEnd(kind string, t *corev1.ContainerStateTerminated) string {
	return joinTexts(fmt.Sprintf("%s ended with exit code %d", kind, t.ExitCode), t.Message)
}

// joinTexts returns "head: tail" on a single line. Both texts may be empty.
func joinTexts(head, tail string) string {
	head, tail = oneLine(head), oneLine(tail)
	if head == "" || tail == "" {
		return head + tail
	}
	return head + ": " + tail
}

func oneLine(text string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// startingReasons contains the reasons of waiting containers that will start without action by a user.
var startingReasons = []string{"", "ContainerCreating", "PodInitializing"}

// failureReasons contains reasons of waiting containers that may require action by a user. If the value is true, they
// always do. If it is false, the kubelet's message may show a transient cause. All other reasons count as transient.
var failureReasons = map[string]bool{
	"ErrImagePull":              false,
	"ImagePullBackOff":          false,
	"ImageInspectError":         false,
	"ErrImageNeverPull":         true,
	"InvalidImageName":          true,
	"SignatureValidationFailed": true,

	"CreateContainerConfigError": false,
	"CreateContainerError":       false,
	"RunContainerError":          false,
	"PreCreateHookError":         false,
	"PreStartHookError":          false,
	"PostStartHookError":         false,
}

// crashLoop is the reason in the status of a container that exited repeatedly and waits for its restart.
const crashLoop = "CrashLoopBackOff"

// waitingProblem returns the problem of a waiting container, or nil if the container will start by itself.
func waitingProblem(kind string, s corev1.ContainerStatus) *pool.Problem {
	w := s.State.Waiting
	switch {
	case w.Reason == crashLoop:
		return crashProblem(kind, s)
	case slices.Contains(startingReasons, w.Reason):
		return nil
	}
	message := w.Message
	if t := s.LastTerminationState.Terminated; t != nil && message == "" {
		message = t.Message // the message of the previous exit explains the delay
	}
	always, listed := failureReasons[w.Reason]
	permanent := always || (listed && !isTransient(message) && !lacksCause(message))
	return newProblem(kindOf(permanent, false), w.Reason, joinTexts(kind, message))
}

// lacksCause reports whether a kubelet's message names no cause for a failed image pull. Kubernetes before 1.32 writes
// such messages while it waits before the next pull. The message after the next attempt contains the cause.
func lacksCause(message string) bool {
	return strings.HasPrefix(message, `Back-off pulling image "`) && strings.HasSuffix(message, `"`)
}

// crashProblem returns the problem of a container that exits after each start, with the cause of the last exit.
func crashProblem(kind string, s corev1.ContainerStatus) *pool.Problem {
	t := s.LastTerminationState.Terminated
	if t == nil {
		return newProblem(pool.Fatal, crashLoop, joinTexts(kind, s.State.Waiting.Message))
	}
	how := fmt.Sprintf("%s ended with exit code %d", kind, t.ExitCode)
	if t.Reason != "" {
		how += " (" + t.Reason + ")"
	}
	return newProblem(kindOf(ownFault(t), false), crashLoop, joinTexts(joinTexts(how, t.Message), s.State.Waiting.Message))
}

// passingCauses contains parts of the messages by which kubelets and container runtimes describe transient failures.
// The reason in the status, such as "ErrImagePull", is not enough, because permanent failures may have the same reason.
// Transient failures with other messages count as permanent, so that callers get the error sooner.
var passingCauses = []string{
	"i/o timeout", "tls handshake timeout", "context deadline exceeded", "context canceled",
	"connection refused", "connection reset", "no route to host", "network is unreachable",
	"unexpected eof", "server misbehaving", "temporary failure in name resolution",
	"429 too many requests", "toomanyrequests", "pull qps exceeded",
	"500 internal server error", "502 bad gateway", "503 service unavailable", "504 gateway timeout",
	"is reserved for", // a container of that name is still being removed
}

// isTransient reports whether a message of a kubelet or container runtime describes a transient failure.
func isTransient(message string) bool {
	message = strings.ToLower(message)
	return slices.ContainsFunc(passingCauses, func(cause string) bool { return strings.Contains(message, cause) })
}
