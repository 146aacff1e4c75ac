// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// credentials returns the Secret with a docker configuration.
func credentials(dockerConfig []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: authSecret}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: dockerConfig},
	}
}

// authorities returns the Secret with an authority.
func authorities(ca []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: tlsSecret}, Data: map[string][]byte{"ca.crt": ca}}
}

// put creates or replaces a Secret of the services.
func (sys *system) put(t *testing.T, secret *corev1.Secret) {
	t.Helper()
	secrets := s.Client.CoreV1().Secrets(sys.services)
	_, err := secrets.Create(suite.Context(t), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(suite.Context(t), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// eventually retries an action until it succeeds, and makes the kubelet bring changed Secrets into
// pods in the meantime.
func (sys *system) eventually(t *testing.T, try func() error) {
	t.Helper()
	ctx := suite.Context(t)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		sys.touch(t)
		err := try()
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("it never succeeded: %v", err)
		}
	}
}

// touch makes the kubelet sync the services' pods.
func (sys *system) touch(t *testing.T) {
	t.Helper()
	for _, pod := range sys.pods(t, sys.services) {
		s.Touch(suite.Context(t), t, sys.services, pod.Name)
	}
}

func (sys *system) pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(namespace).List(suite.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// started returns the services' containers, which change with each restart.
func (sys *system) started(t *testing.T) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for _, pod := range sys.pods(t, sys.services) {
		for _, c := range pod.Status.ContainerStatuses {
			ids[c.ContainerID] = true
		}
	}
	return ids
}
