package podspec

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Failure is what keeps a pod from serving, in the words of kubelet and scheduler.
//
// Neither Permanent nor Ended means that the pod may yet become ready by itself, as
// one for which there is no room on any node now.
type Failure struct {
	// Reason is one word, such as "ErrImagePull".
	Reason string
	// Message is a text of one line; it may be empty.
	Message string
	// Permanent says that another pod like this one would fail in the same way,
	// until somebody changes something.
	Permanent bool
	// Ended says that this pod will not serve any more, whatever happens.
	Ended bool
	// OutOfMemory says that the kernel ended the function container for memory.
	OutOfMemory bool
}

// outOfMemory is the kubelet's reason for a container that the kernel ended for memory.
const outOfMemory = "OOMKilled"

// String returns reason and message.
func (f Failure) String() string { return join(f.Reason, f.Message) }

// failure finds what keeps a pod from serving: the pod as a whole, what comes before
// the function container, that container, or the lack of a node. Containers beside
// it do not count: whether the function can be called shows without them.
func failure(pod *corev1.Pod) *Failure {
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
// node. It says nothing about the next pod.
func podFailure(pod *corev1.Pod) *Failure {
	over := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodUnknown
	if pod.Status.Reason == "NodeLost" || over && pod.Status.Reason != "" {
		return &Failure{Reason: pod.Status.Reason, Message: oneLine(pod.Status.Message), Ended: true}
	}
	return nil
}

// finished is the failure of a pod that came to its end without a word about it.
func finished(pod *corev1.Pod) *Failure {
	switch pod.Status.Phase {
	case corev1.PodFailed, corev1.PodSucceeded, corev1.PodUnknown:
		f := &Failure{Reason: string(pod.Status.Phase), Ended: true}
		if c := condition(pod, corev1.DisruptionTarget); c != nil {
			f.Reason, f.Message = c.Reason, oneLine(c.Message)
		}
		return f
	default:
		return nil
	}
}

// unschedulable is why the scheduler finds no node. Room may appear: others end, and
// autoscalers bring nodes.
func unschedulable(pod *corev1.Pod) *Failure {
	c := condition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse || pod.Spec.NodeName != "" || c.Reason == corev1.PodReasonSchedulingGated {
		return nil
	}
	return &Failure{Reason: cmp.Or(c.Reason, corev1.PodReasonUnschedulable), Message: oneLine(c.Message)}
}

// initFailure is what keeps an init container from coming to its end.
func initFailure(pod *corev1.Pod, s corev1.ContainerStatus) *Failure {
	kind := fmt.Sprintf("init container %q", s.Name)
	if s.State.Waiting != nil {
		return waiting(kind, s)
	}
	t := s.State.Terminated
	if t == nil || t.ExitCode == 0 || sidecar(pod, s.Name) {
		return nil
	}
	return &Failure{
		Reason: cmp.Or(t.Reason, "Error"), Message: ended(kind, t), Permanent: ownFault(t),
		Ended: pod.Spec.RestartPolicy == corev1.RestartPolicyNever,
	}
}

// sidecar says whether an init container is one that goes on beside the others, and
// is started again whatever its end.
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

// functionFailure is what keeps the function container from serving. One that ended
// counts as gone even if the kubelet is to start it again: what it ran is lost, and
// another pod may be there sooner. One that was ended for memory may run again before
// anybody has seen that it did: whoever lost it has to be told all the same.
func functionFailure(s corev1.ContainerStatus) *Failure {
	kind := fmt.Sprintf("container %q", s.Name)
	last := s.LastTerminationState.Terminated
	starved := last != nil && last.Reason == outOfMemory
	if s.State.Waiting != nil {
		f := waiting(kind, s)
		if f != nil && f.Reason == crashLoop {
			f.Ended, f.OutOfMemory = true, starved
		}
		return f
	}
	t := s.State.Terminated
	if t == nil && starved {
		t = last
	}
	if t == nil {
		return nil
	}
	// One that could not even be started says that it was in 1970.
	soon := t.StartedAt.Unix() <= 0 || t.FinishedAt.Sub(t.StartedAt.Time) < startup
	return &Failure{
		Reason: cmp.Or(t.Reason, "Terminated"), Message: ended(kind, t), Permanent: soon && ownFault(t),
		Ended: true, OutOfMemory: t.Reason == outOfMemory,
	}
}

const (
	exitKilled     = 128 + 9
	exitTerminated = 128 + 15
)

// ownFault says whether a container ended by what it is, rather than by being killed:
// by the kernel for memory, which depends on the data, or by somebody from outside.
func ownFault(t *corev1.ContainerStateTerminated) bool {
	return t.Reason != outOfMemory && t.ExitCode != exitKilled && t.ExitCode != exitTerminated
}

// ended says how a container ended, on one line.
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
