//go:build e2e

package bed_test

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

func TestRegistryPulls(t *testing.T) {
	for _, name := range []string{"open", "private", "secure"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := s.Registry(t, name)
			ctx, namespace := suite.Context(t), s.Namespace(t)
			pod := puller(registry.Host)
			if registry.Username != "" {
				pod.Spec.ImagePullSecrets = secret(t, namespace, registry.Host, registry.Username, registry.Password)
			}
			s.Output(ctx, t, namespace, pod)
		})
	}
}

func TestRegistryRefuses(t *testing.T) {
	private, secure := s.Registry(t, "private"), s.Registry(t, "secure")
	for _, test := range []struct {
		reason     string
		host, user string
		password   string
		want       string
	}{
		{"private-without-credentials", private.Host, "", "", "no basic auth credentials"},
		{"private-with-a-wrong-password", private.Host, private.Username, "wrong", "401"},
		{"secure-without-credentials", secure.Host, "", "", "no basic auth credentials"},
		{"secure-without-authority", secure.Alias, secure.Username, secure.Password, "certificate signed by unknown authority"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			ctx, namespace := suite.Context(t), s.Namespace(t)
			pod := puller(test.host)
			if test.user != "" {
				pod.Spec.ImagePullSecrets = secret(t, namespace, test.host, test.user, test.password)
			}
			s.Create(ctx, t, namespace, pod)
			refused := s.Await(ctx, t, namespace, pod.Name, func(pod *corev1.Pod) bool {
				reason, _ := suite.Waiting(pod)
				return reason == "ErrImagePull" || pod.Status.Phase == corev1.PodSucceeded
			})
			if _, message := suite.Waiting(refused); !strings.Contains(message, test.want) {
				t.Errorf("the pod is %s; want a refusal that says %q", suite.Describe(refused), test.want)
			}
		})
	}
}

// puller is a pod that asks the registry even if the node has the image.
func puller(host string) *corev1.Pod {
	pod := suite.Pod("puller", host+"/toolbox:latest", "list", "/")
	pod.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	return pod
}

// secret gives the namespace credentials for a registry.
func secret(t *testing.T, namespace, host, user, password string) []corev1.LocalObjectReference {
	t.Helper()
	const name = "registry"
	content := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: dockerConfig(t, host, user, password)},
	}
	if _, err := s.Client.CoreV1().Secrets(namespace).Create(suite.Context(t), content, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return []corev1.LocalObjectReference{{Name: name}}
}
