// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// remedy is the change that a waiting container requires, by the kubelet's reason.
type remedy int

const (
	// byItself means that the container is being started.
	byItself remedy = iota + 1
	// change means that a user must change something, unless the message names a transient cause.
	change
	// always means that a user must change something.
	always
)

// remedies are the remedies by the kubelet's reasons. Other reasons count as transient, such as a temporary network
// failure.
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

// crashLoop is the kubelet's reason for a container that exited too often.
const crashLoop = "CrashLoopBackOff"

// waitingProblem returns the problem that prevents a container from starting, or nil if the container is being
// started.
func waitingProblem(kind string, s corev1.ContainerStatus) *pool.Problem {
	w := s.State.Waiting
	if w.Reason == crashLoop {
		return crashProblem(kind, s)
	}
	message := w.Message
	if t := s.LastTerminationState.Terminated; t != nil && message == "" {
		message = t.Message // the end of the previous attempt explains the delay
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

// crashProblem returns the problem of a container that exits after each start. The cause of its last exit comes first.
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

// passingCauses are parts of messages of kubelets and container runtimes about transient failures, whose reasons are
// also the reasons of permanent failures. A missing message only makes the error arrive sooner.
var passingCauses = []string{
	"i/o timeout", "tls handshake timeout", "context deadline exceeded", "context canceled",
	"connection refused", "connection reset", "no route to host", "network is unreachable",
	"unexpected eof", "server misbehaving", "temporary failure in name resolution",
	"429 too many requests", "toomanyrequests", "pull qps exceeded",
	"500 internal server error", "502 bad gateway", "503 service unavailable", "504 gateway timeout",
	"is reserved for", // a container of that name is still being removed
}

// isTransient reports whether a message describes a transient failure.
func isTransient(message string) bool {
	message = strings.ToLower(message)
	for _, cause := range passingCauses {
		if strings.Contains(message, cause) {
			return true
		}
	}
	return false
}
