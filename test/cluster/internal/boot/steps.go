// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// waitForAPI waits until the API server answers and the namespaces default and kube-system exist. The API server
// creates them some time after its first answer.
func waitForAPI(ctx context.Context, client kubernetes.Interface) error {
	return pollUntil(ctx, "the API server", func(ctx context.Context) error {
		for _, namespace := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
			if _, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func waitForNode(ctx context.Context, client kubernetes.Interface) error {
	return pollUntil(ctx, "the node", func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, layout.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				return errors.New(condition.Message)
			}
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("the node has the taint %s", node.Spec.Taints[0].Key)
		}
		return nil
	})
}

// createObject creates an object unless it exists. It retries after errors, because a new API server rejects objects
// until it can validate them and allocate their addresses.
func createObject[T any](ctx context.Context, object *T, in interface {
	Create(context.Context, *T, metav1.CreateOptions) (*T, error)
},
) error {
	return pollUntil(ctx, fmt.Sprintf("a new %T", object), func(ctx context.Context) error {
		_, err := in.Create(ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
