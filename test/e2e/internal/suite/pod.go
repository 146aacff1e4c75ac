// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Pod returns a pod with a single container that is not restarted.
func Pod(name, image string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(1)),
			Containers:                    []corev1.Container{{Name: "main", Image: image, Args: args}},
		},
	}
}

// BarePod returns a pod that starts as fast as possible, because it runs only the toolbox. Its pull policy is
// IfNotPresent, so that a start does not call the registry. The default of [Pod], Always, would do so.
func (s *Suite) BarePod(name string) *corev1.Pod {
	pod := Pod(name, s.Toolbox, "serve", ":8080", "ready")
	pod.Spec.Containers[0].ImagePullPolicy = corev1.PullIfNotPresent
	return pod
}

// Create creates the pod.
func (s *Suite) Create(ctx context.Context, t testing.TB, namespace string, pod *corev1.Pod) {
	t.Helper()
	if _, err := s.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create pod %s: %v", pod.Name, err)
	}
}

// Output runs a pod until it exits, and returns its output. The test fails if the pod fails.
func (s *Suite) Output(ctx context.Context, t testing.TB, namespace string, pod *corev1.Pod) string {
	t.Helper()
	s.Create(ctx, t, namespace, pod)
	ended := s.Await(ctx, t, namespace, pod.Name, func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || isStuck(pod)
	})
	if isStuck(ended) {
		t.Fatalf("pod %s does not start: %s", pod.Name, Describe(ended))
	}
	output, err := s.Client.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		t.Fatalf("read the output of pod %s: %v", pod.Name, err)
	}
	if ended.Status.Phase != corev1.PodSucceeded {
		t.Fatalf("pod %s failed: %s", pod.Name, output)
	}
	return string(output)
}

// Await waits until the given function returns true for a pod, and returns the pod in this state.
func (s *Suite) Await(ctx context.Context, t testing.TB, namespace, name string, holds func(
	*corev1.Pod) bool,
) *corev1.Pod {
	t.Helper()
	selector := fields.OneTermEqualSelector("metadata.name", name)
	pods := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "pods", namespace, selector)
	var last *corev1.Pod
	_, err := watchtools.UntilWithSync(ctx, pods, &corev1.Pod{}, nil, func(event watch.Event) (bool, error) {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || event.Type == watch.Deleted {
			return false, fmt.Errorf("unexpected event %s", event.Type)
		}
		last = pod
		return holds(pod), nil
	})
	if err != nil {
		t.Fatalf("wait for pod %s: %v; it is %s", name, err, Describe(last))
	}
	return last
}

// Ready reports whether the pod is ready.
func Ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Waiting returns the reason and message of the pod's first container in the state "waiting". A reason is, for example,
// ErrImagePull. Both are empty if no container is in this state.
func Waiting(pod *corev1.Pod) (reason, message string) {
	for _, status := range pod.Status.ContainerStatuses {
		if waiting := status.State.Waiting; waiting != nil {
			return waiting.Reason, waiting.Message
		}
	}
	return "", ""
}

// isStuck reports whether the pod's image cannot be pulled, so that waiting is useless.
func isStuck(pod *corev1.Pod) bool {
	reason, _ := Waiting(pod)
	return reason == "ErrImagePull" || reason == "ImagePullBackOff"
}

// Describe returns the pod's phase and the reason for which its container waits, for error messages.
func Describe(pod *corev1.Pod) string {
	if pod == nil {
		return "unknown"
	}
	reason, message := Waiting(pod)
	return fmt.Sprintf("%s %s %s", pod.Status.Phase, reason, message)
}

// Touch changes an annotation of a pod, so that the kubelet updates the pod's Secrets and ConfigMaps at once. Without
// such a change, the update takes up to about a minute.
func (s *Suite) Touch(ctx context.Context, t testing.TB, namespace, name string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"e2e/touched":%q}}}`, time.Now())
	if _, err := s.Client.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// AwaitGone waits until a pod no longer exists.
func (s *Suite) AwaitGone(ctx context.Context, t testing.TB, namespace, name string) {
	t.Helper()
	selector := fields.OneTermEqualSelector("metadata.name", name)
	awaitNone(ctx, t, cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "pods", namespace, selector),
		&corev1.Pod{}, func(metav1.Object) error { return nil })
}
