// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Namespace creates a namespace for a test and returns its name. It deletes the namespace after the test. If the
// test fails, it first saves the objects and logs in the namespace.
func (s *Suite) Namespace(t testing.TB) string {
	t.Helper()
	ctx := Context(t)
	template := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	namespace, err := s.Client.CoreV1().Namespaces().Create(ctx, template, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		// Use a new context, because the test's context is already cancelled.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if t.Failed() {
			s.collectNamespace(ctx, t, namespace.Name)
		}
		if err := s.Client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete namespace %s: %v", namespace.Name, err)
		}
	})
	s.awaitServiceAccount(ctx, t, namespace.Name)
	return namespace.Name
}

// awaitServiceAccount waits for the namespace's default service account, which all pods need.
func (s *Suite) awaitServiceAccount(ctx context.Context, t testing.TB, namespace string) {
	t.Helper()
	selector := fields.OneTermEqualSelector("metadata.name", "default")
	accounts := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "serviceaccounts", namespace, selector)
	_, err := watchtools.UntilWithSync(ctx, accounts, &corev1.ServiceAccount{}, nil, func(event watch.Event) (bool,
		error,
	) {
		return event.Type == watch.Added, nil
	})
	if err != nil {
		t.Fatalf("wait for the default service account of %s: %v", namespace, err)
	}
}
