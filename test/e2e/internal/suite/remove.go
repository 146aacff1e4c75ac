// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

// RemoveNamespace deletes a namespace and waits until it is gone. Tests must call it from a cleanup function. After a
// failed test, it first saves the namespace's objects and logs. It deletes controllers and pods itself, because the
// namespace controller would wait for half of a pod's grace period. It also shortens the grace period. Otherwise, a
// container that is just starting would miss SIGTERM and run until the grace period ends.
func (s *Suite) RemoveNamespace(t testing.TB, name string) {
	t.Helper()
	ctx := CleanupContext(t)
	if t.Failed() {
		s.collectNamespace(ctx, t, name)
	}
	all, apps, core := metav1.ListOptions{}, s.Client.AppsV1(), s.Client.CoreV1()
	for _, remove := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		s.Client.AutoscalingV2().HorizontalPodAutoscalers(name).DeleteCollection,
		apps.Deployments(name).DeleteCollection,
		apps.ReplicaSets(name).DeleteCollection,
	} {
		if err := remove(ctx, metav1.DeleteOptions{}, all); err != nil {
			t.Errorf("delete the objects in %s: %v", name, err)
		}
	}
	pods := cache.NewListWatchFromClient(core.RESTClient(), "pods", name, fields.Everything())
	removeAll(ctx, t, pods, &corev1.Pod{}, func(pod string) error {
		return core.Pods(name).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(grace))})
	})
	selector := fields.OneTermEqualSelector("metadata.name", name)
	itself := cache.NewListWatchFromClient(core.RESTClient(), "namespaces", metav1.NamespaceAll, selector)
	removeAll(ctx, t, itself, &corev1.Namespace{}, func(string) error {
		return core.Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	})
}

// grace is the maximum grace period of pods in seconds. A controller may have deleted a pod with a longer grace period.
// To save time, the tests then delete the pod again with this maximum.
const grace = 60

// removeAll deletes objects until none exist. It also deletes objects that a controller creates in the meantime,
// because the garbage collector would delete them only much later.
func removeAll(ctx context.Context, t testing.TB, objects *cache.ListWatch, kind runtime.Object, remove func(
	name string) error,
) {
	t.Helper()
	awaitNone(ctx, t, objects, kind, func(object metav1.Object) error {
		if object.GetDeletionTimestamp() != nil && ptr.Deref(object.GetDeletionGracePeriodSeconds(), 0) <= grace {
			return nil
		}
		if err := remove(object.GetName()); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
}

// awaitNone waits until none of the objects exist. Until then, it passes each existing object to the callback there, at
// first and after each change of the object. If the callback returns an error, the test fails.
func awaitNone(ctx context.Context, t testing.TB, objects *cache.ListWatch, kind runtime.Object, there func(
	metav1.Object) error,
) {
	t.Helper()
	left := map[string]bool{}
	none := func(store cache.Store) (bool, error) { return len(store.ListKeys()) == 0, nil }
	_, err := watchtools.UntilWithSync(ctx, objects, kind, none, func(event watch.Event) (bool, error) {
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return false, err
		}
		if event.Type != watch.Deleted {
			left[object.GetName()] = true
			return false, there(object)
		}
		delete(left, object.GetName())
		return len(left) == 0, nil
	})
	if err != nil {
		t.Errorf("wait until these are gone: %v: %v", slices.Collect(maps.Keys(left)), err)
	}
}
