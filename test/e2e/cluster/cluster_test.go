//go:build e2e

package cluster_test

import (
	"os"
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

func TestServiceAnswers(t *testing.T) {
	t.Parallel()
	const text = "the answer of the service"
	ctx, namespace := suite.Context(t), s.Namespace(t)
	s.Create(ctx, t, namespace, suite.Pod("server", s.Toolbox, "serve", ":8080", text))
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "greeter"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "server"}, Ports: []corev1.ServicePort{{Port: 8080}}},
	}
	if _, err := s.Client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Await(ctx, t, namespace, "server", suite.Ready)
	client := suite.Pod("client", s.Toolbox, "get", "http://greeter:8080/")
	// The Service's rules may be a moment later than its pod.
	client.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	if output := s.Output(ctx, t, namespace, client); output != text {
		t.Errorf("the service answers %q, want %q", output, text)
	}
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
