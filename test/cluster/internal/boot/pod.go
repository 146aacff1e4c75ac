// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// runPod runs a pod until it succeeds. Success proves that scheduler, kubelet, runtime, network and registry work.
func runPod(ctx context.Context, client kubernetes.Interface) error {
	if err := awaitServiceAccount(ctx, client); err != nil {
		return err
	}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	pod := firstPod()
	if err := createObject(ctx, pod, pods); err != nil {
		return err
	}
	err := pollUntil(ctx, "the first pod", func(ctx context.Context) error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || now.Status.Phase == corev1.PodSucceeded {
			return err
		}
		return fmt.Errorf("the pod is %s: %v", now.Status.Phase, now.Status.ContainerStatuses)
	})
	if err != nil {
		return err
	}
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete the first pod: %w", err)
	}
	return nil
}

// awaitServiceAccount waits for the service account of pods in the default namespace. The controller manager
// creates it some time after the namespace.
func awaitServiceAccount(ctx context.Context, client kubernetes.Interface) error {
	accounts := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	return pollUntil(ctx, "the default service account", func(ctx context.Context) error {
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func firstPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "first-pod"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name:  "toolbox",
				Image: layout.Open.Host() + "/toolbox:latest",
				Args:  []string{"list", "/"},
				// Pull even if the node has the image already, so that the pod tests the registry.
				ImagePullPolicy: corev1.PullAlways,
			}},
		},
	}
}
