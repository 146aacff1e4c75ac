// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
)

// slow is a Kubernetes whose answers to creations of pods and requests to delete
// Services take a second on their way. (The one in memory must not wait itself: it
// does so for everybody.)
type slow struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported says what the one in memory says too: it does not
// list in watches.
func (s slow) IsWatchListSemanticsUnSupported() bool { return true }

func (s slow) CoreV1() typed.CoreV1Interface { return slowCore{s.Interface.CoreV1()} }

type slowCore struct{ typed.CoreV1Interface }

func (s slowCore) Pods(namespace string) typed.PodInterface {
	return slowPods{s.CoreV1Interface.Pods(namespace)}
}

func (s slowCore) Services(namespace string) typed.ServiceInterface {
	return slowServices{s.CoreV1Interface.Services(namespace)}
}

type slowPods struct{ typed.PodInterface }

func (s slowPods) Create(ctx context.Context, pod *corev1.Pod, options metav1.CreateOptions) (*corev1.Pod, error) {
	created, err := s.PodInterface.Create(ctx, pod, options)
	<-time.After(time.Second)
	return created, err
}

type slowServices struct{ typed.ServiceInterface }

func (s slowServices) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	<-time.After(time.Second)
	return s.ServiceInterface.Delete(ctx, name, options)
}
