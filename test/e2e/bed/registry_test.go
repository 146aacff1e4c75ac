// SPDX-License-Identifier: Apache-2.0

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

// TestRegistryPulls runs an image of each registry, and mounts another one as a volume.
func TestRegistryPulls(t *testing.T) {
	for _, name := range []string{"open", "private", "secure"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := s.Registry(t, name)
			ctx, namespace := suite.Context(t), s.Namespace(t)
			pod := puller(registry.Host+"/"+fresh(t, registry), registry.Host+"/"+fresh(t, registry))
			if registry.Username != "" {
				pod.Spec.ImagePullSecrets = secret(t, namespace, registry.Host, registry.Username, registry.Password)
			}
			if output := s.Output(ctx, t, namespace, pod); !strings.Contains(output, "program") {
				t.Errorf("the volume has %q, want the image's files", output)
			}
		})
	}
}

func TestRegistryRefuses(t *testing.T) {
	private, secure := s.Registry(t, "private"), s.Registry(t, "secure")
	privateImage, secureImage := "/"+fresh(t, private), "/"+fresh(t, secure)
	for _, test := range []struct {
		reason      string
		host, image string
		user        string
		password    string
		want        string
	}{
		{"private-without-credentials", private.Host, privateImage, "", "", "no basic auth credentials"},
		{"private-with-a-wrong-password", private.Host, privateImage, private.Username, "wrong", "401"},
		{"secure-without-credentials", secure.Host, secureImage, "", "", "no basic auth credentials"},
		{
			"secure-without-authority", secure.Alias, secureImage, secure.Username, secure.Password,
			"certificate signed by unknown authority",
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			ctx, namespace := suite.Context(t), s.Namespace(t)
			pod := suite.Pod("puller", test.host+test.image, "list", "/")
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

// puller is a pod that lists the files of another image.
func puller(image, other string) *corev1.Pod {
	pod := suite.Pod("puller", image, "list", "/image")
	pod.Spec.Volumes = []corev1.Volume{{
		Name:         "image",
		VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: other}},
	}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "image", MountPath: "/image", ReadOnly: true}}
	return pod
}

// secret creates a Secret with credentials for a registry.
func secret(t *testing.T, namespace, host, user, password string) []corev1.LocalObjectReference {
	t.Helper()
	const name = "registry"
	content := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: dockerConfig(t, host, user, password)},
	}
	if _, err := s.Client.CoreV1().Secrets(namespace).Create(suite.Context(t), content,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return []corev1.LocalObjectReference{{Name: name}}
}
