// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// remedy describes how a waiting container can start: by itself, or after a user has changed something.
type remedy int

const (
	// byItself means that the container will start without any change by a user.
	byItself remedy = iota + 1
	// change means that a user must change something, unless the kubelet's message contains a transient cause.
	change
	// always means that a user must change something, regardless of the kubelet's message.
	always
)

// remedies contains the remedy for each reason of a waiting container. Missing reasons count as transient.
var remedies = map[string]remedy{
	"":                  byItself,
	"ContainerCreating": byItself,
	"PodInitializing":   byItself,

	"ErrImagePull":              change,
	"ImagePullBackOff":          change,
	"ImageInspectError":         change,
	"ErrImageNeverPull":         always,
	"InvalidImageName":          always,
	"SignatureValidationFailed": always,

	"CreateContainerConfigError": change,
	"CreateContainerError":       change,
	"RunContainerError":          change,
	"PreCreateHookError":         change,
	"PreStartHookError":          change,
	"PostStartHookError":         change,
}

// crashLoop is the reason in the status of a container that exited repeatedly and waits for its restart.
const crashLoop = "CrashLoopBackOff"

// waitingProblem returns the problem of a waiting container. It is nil if the container will start by itself.
func waitingProblem(kind string, s corev1.ContainerStatus) *pool.Problem {
	w := s.State.Waiting
	if w.Reason == crashLoop {
		return crashProblem(kind, s)
	}
	message := w.Message
	if t := s.LastTerminationState.Terminated; t != nil && message == "" {
		message = t.Message // the message of the previous exit explains the delay
	}
	permanent := false
	switch remedies[w.Reason] {
	case byItself:
		return nil
	case change:
		permanent = !isTransient(message)
	case always:
		permanent = true
	}
	return newProblem(kindOf(permanent, false), w.Reason, joinTexts(kind, message))
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

// passingCauses contains parts of messages by which kubelets and container runtimes describe transient failures.
// The reason is not enough, because permanent failures can have the same reason, such as "ErrImagePull". A
// transient failure whose message is missing here counts as permanent, so that callers get its error sooner.
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
	for _, cause := range passingCauses {
		if strings.Contains(message, cause) {
			return true
		}
	}
	return false
}
