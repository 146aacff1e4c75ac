// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package cluster_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

var s *suite.Suite

func TestMain(m *testing.M) {
	os.Exit(suite.Run(m, func(connected *suite.Suite) { s = connected }))
}

func TestPodRuns(t *testing.T) {
	t.Parallel()
	output := s.Output(suite.Context(t), t, s.Namespace(t), suite.Pod("lister", s.Toolbox, "list", "/"))
	if !strings.Contains(output, "program") {
		t.Errorf("the pod sees %q, want its own program", output)
	}
}

func TestNameResolves(t *testing.T) {
	t.Parallel()
	name := "kubernetes.default.svc"
	output := s.Output(suite.Context(t), t, s.Namespace(t), suite.Pod("resolver", s.Toolbox, "resolve", name))
	if !strings.HasPrefix(output, "[") || output == "[]\n" {
		t.Errorf("%s resolves to %q, want an address", name, output)
	}
}

// TestServiceAnswers calls a Service with one pod: from another pod, which on a node is a neighbour
// on the same bridge, and from the pod itself. Neither works without configuration: answers would
// go directly to the caller, which expects them from the Service.
func TestServiceAnswers(t *testing.T) {
	t.Parallel()
	const text, url = "the answer of the service", "http://greeter:8080/"
	ctx, namespace := suite.Context(t), s.Namespace(t)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "greeter"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "server"}, Ports: []corev1.ServicePort{{Port: 8080}},
			// The server is not ready as a whole once its second container has ended.
			PublishNotReadyAddresses: true,
		},
	}
	if _, err := s.Client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	server, client := suite.Pod("server", s.Toolbox, "serve", ":8080", text), suite.Pod("client", s.Toolbox, "get", url)
	server.Spec.Containers = append(server.Spec.Containers,
		corev1.Container{Name: "itself", Image: s.Toolbox, Args: []string{"get", url}})
	s.Create(ctx, t, namespace, server)
	if output := s.Output(ctx, t, namespace, client); output != text {
		t.Errorf("the service answers its neighbour %q, want %q", output, text)
	}
	s.Await(ctx, t, namespace, "server", func(pod *corev1.Pod) bool { return succeeded(pod, "itself") })
	output, err := s.Client.CoreV1().Pods(namespace).GetLogs("server",
		&corev1.PodLogOptions{Container: "itself"}).DoRaw(ctx)
	if err != nil || string(output) != text {
		t.Errorf("the service answers its own pod %q, %v, want %q", output, err, text)
	}
}

// succeeded reports whether a container of the pod has exited with code 0.
func succeeded(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		ended := status.State.Terminated
		return status.Name == container && ended != nil && ended.ExitCode == 0
	})
}

func TestImageVolumeMounts(t *testing.T) {
	t.Parallel()
	pod := suite.Pod("reader", s.Toolbox, "list", "/image")
	pod.Spec.Volumes = []corev1.Volume{{
		Name:         "image",
		VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: s.Toolbox}},
	}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "image", MountPath: "/image", ReadOnly: true}}
	if output := s.Output(suite.Context(t), t, s.Namespace(t), pod); !strings.Contains(output, "program") {
		t.Errorf("the volume has %q, want the image's files", output)
	}
}
