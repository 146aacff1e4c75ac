// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"crypto/tls"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// serving returns the pods that are ready, and not about to end.
func (p place) serving(t *testing.T, namespace, selector string) (serving []corev1.Pod) {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: selector}
	pods, err := s.Client.CoreV1().Pods(namespace).List(suite.Context(t), options)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if suite.Ready(&pods.Items[i]) && pods.Items[i].DeletionTimestamp == nil {
			serving = append(serving, pods.Items[i])
		}
	}
	return serving
}

// first returns a pod that serves, of an app or, for none, of a function.
func (p place) first(t *testing.T, app string) corev1.Pod {
	t.Helper()
	namespace, selector := p.system, "app="+app
	if app == "" {
		namespace, selector = p.functions, "fn.kpt.dev/image"
	}
	pods := p.serving(t, namespace, selector)
	if len(pods) == 0 {
		t.Fatalf("no pod with %s serves in %s", selector, namespace)
	}
	return pods[0]
}

// strangersGetNothing calls the ports for our own programs without a certificate, with and without TLS.
func (p place) strangersGetNothing(t *testing.T) {
	t.Helper()
	const want = "Unauthenticated; 401 Unauthorized: GET /metrics; OK: Check"
	attackers := p.attackerPods(t)
	addresses := make(map[string]string)
	for _, pod := range p.serving(t, p.functions, "fn.kpt.dev/image") {
		addresses[pod.Name] = pod.Status.PodIP + ":9446"
	}
	for app, port := range map[string]string{"pod-manager": ":9448", "image-resolver": ":9449"} {
		for _, pod := range p.serving(t, p.system, "app="+app) {
			addresses[pod.Name] = pod.Status.PodIP + port
		}
	}
	for pod, address := range addresses {
		for _, from := range attackers {
			for _, with := range []credential{{}, {tls: &tls.Config{InsecureSkipVerify: true}}} {
				if got := from.tries(t, address, with); got != want {
					t.Errorf("%s answers an attacker in %s: %s, want %s", pod, from.namespace, got, want)
				}
			}
		}
	}
}
