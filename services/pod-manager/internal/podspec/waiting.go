package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// remedy says what becomes of a container that waits, by the kubelet's reason.
type remedy int

const (
	// byItself: it is on its way.
	byItself remedy = iota + 1
	// change: somebody has to change something, unless the message says otherwise.
	change
	// always: somebody has to change something.
	always
)

// remedies are the kubelet's reasons. Those that are not here may pass, such as a
// network that cannot be set up just now.
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

// crashLoop is the kubelet's reason for a container that ended too often.
const crashLoop = "CrashLoopBackOff"

// waiting is what keeps a container from starting; nil if it is on its way.
func waiting(kind string, s corev1.ContainerStatus) *pool.Problem {
	w := s.State.Waiting
	if w.Reason == crashLoop {
		return crashing(kind, s)
	}
	message := w.Message
	if t := s.LastTerminationState.Terminated; t != nil && message == "" {
		message = t.Message // how the attempt before ended says what is in the way of this one
	}
	permanent := false
	switch remedies[w.Reason] {
	case byItself:
		return nil
	case change:
		permanent = !passing(message)
	case always:
		permanent = true
	}
	return problem(kindOf(permanent, false), w.Reason, join(kind, message))
}

// crashing is a container that ends each time it is started. Why it did so last is
// worth more than that it does.
func crashing(kind string, s corev1.ContainerStatus) *pool.Problem {
	t := s.LastTerminationState.Terminated
	if t == nil {
		return problem(pool.Fatal, crashLoop, join(kind, s.State.Waiting.Message))
	}
	how := fmt.Sprintf("%s ended with exit code %d", kind, t.ExitCode)
	if t.Reason != "" {
		how += " (" + t.Reason + ")"
	}
	return problem(kindOf(ownFault(t), false), crashLoop, join(join(how, t.Message), s.State.Waiting.Message))
}

// passingCauses are parts of messages of kubelets and container runtimes that speak
// of something that passes by itself, which no reason tells from the rest. A message
// that is not recognized here only makes the answer come sooner.
var passingCauses = []string{
	"i/o timeout", "tls handshake timeout", "context deadline exceeded", "context canceled",
	"connection refused", "connection reset", "no route to host", "network is unreachable",
	"unexpected eof", "server misbehaving", "temporary failure in name resolution",
	"429 too many requests", "toomanyrequests", "pull qps exceeded",
	"500 internal server error", "502 bad gateway", "503 service unavailable", "504 gateway timeout",
	"is reserved for", // a container of that name is still being removed
}

// passing says whether what a message speaks of may pass by itself.
func passing(message string) bool {
	message = strings.ToLower(message)
	for _, cause := range passingCauses {
		if strings.Contains(message, cause) {
			return true
		}
	}
	return false
}
