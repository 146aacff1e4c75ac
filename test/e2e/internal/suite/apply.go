package suite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// fieldManager owns what the tests apply.
const fieldManager = "function-runner-e2e"

// Apply applies objects, or has the API server check them only.
func (s *Suite) Apply(ctx context.Context, t testing.TB, dryRun bool, objects ...*unstructured.Unstructured) {
	t.Helper()
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for _, object := range objects {
		if _, err := s.resource(t, object).Apply(ctx, object.GetName(), object, options); err != nil {
			t.Errorf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// resource is where objects of that kind are in the object's namespace.
func (s *Suite) resource(t testing.TB, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatalf("finding the resource of %s: %v", gvk, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.objects.Resource(mapping.Resource)
	}
	return s.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

// RemoveNamespace deletes a namespace, once what is in it was kept if the test has
// failed, and waits until it is gone. Deployments and function pods end first: the
// control plane would look again only after half of the time that pods may take to end.
// What makes pods goes before them, each before what it makes: an autoscaler may be
// about to have one made, which the garbage collector finds much later. Pods get less time
// than they may ask for: what is told to end while its container starts does not hear of it.
func (s *Suite) RemoveNamespace(ctx context.Context, t testing.TB, name string) {
	t.Helper()
	if t.Failed() {
		s.collectNamespace(ctx, t, name)
	}
	all, apps := metav1.ListOptions{}, s.Client.AppsV1()
	for _, remove := range []func(context.Context, metav1.DeleteOptions, metav1.ListOptions) error{
		s.Client.AutoscalingV2().HorizontalPodAutoscalers(name).DeleteCollection,
		apps.Deployments(name).DeleteCollection,
		apps.ReplicaSets(name).DeleteCollection,
	} {
		if err := remove(ctx, metav1.DeleteOptions{}, all); err != nil {
			t.Errorf("deleting what is in %s: %v", name, err)
		}
	}
	const grace = 60 // seconds
	if err := s.Client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(grace))}, all); err != nil {
		t.Errorf("deleting the pods in %s: %v", name, err)
	}
	pods := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "pods", name, fields.Everything())
	awaitNone(ctx, t, pods, &corev1.Pod{})
	err := s.Client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("deleting namespace %s: %v", name, err)
		return
	}
	selector := fields.OneTermEqualSelector("metadata.name", name)
	namespaces := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), "namespaces", metav1.NamespaceAll, selector)
	awaitNone(ctx, t, namespaces, &corev1.Namespace{})
}

// awaitNone waits until there are no objects.
func awaitNone(ctx context.Context, t testing.TB, objects *cache.ListWatch, kind runtime.Object) {
	t.Helper()
	left := map[string]bool{}
	none := func(store cache.Store) (bool, error) {
		for _, key := range store.ListKeys() {
			left[key] = true
		}
		return len(left) == 0, nil
	}
	_, err := watchtools.UntilWithSync(ctx, objects, kind, none, func(event watch.Event) (bool, error) {
		key, err := cache.MetaNamespaceKeyFunc(event.Object)
		if event.Type == watch.Deleted {
			delete(left, key)
		} else {
			left[key] = true
		}
		return len(left) == 0, err
	})
	if err != nil {
		t.Errorf("waiting until these are gone: %v: %v", slices.Collect(maps.Keys(left)), err)
	}
}

// AwaitRollout waits until all pods of a Deployment are of its newest version and
// ready.
func (s *Suite) AwaitRollout(ctx context.Context, t testing.TB, namespace, name string) {
	t.Helper()
	selector := fields.OneTermEqualSelector("metadata.name", name)
	deployments := cache.NewListWatchFromClient(s.Client.AppsV1().RESTClient(), "deployments", namespace, selector)
	var last *appsv1.Deployment
	_, err := watchtools.UntilWithSync(ctx, deployments, &appsv1.Deployment{}, nil, func(event watch.Event) (bool, error) {
		d, ok := event.Object.(*appsv1.Deployment)
		if !ok || event.Type == watch.Deleted {
			return false, fmt.Errorf("unexpected event %s", event.Type)
		}
		last = d
		return rolledOut(d), nil
	})
	if err != nil {
		t.Fatalf("waiting for deployment %s: %v; it is %+v", name, err, last)
	}
}

func rolledOut(d *appsv1.Deployment) bool {
	want, now := *d.Spec.Replicas, d.Status
	return now.ObservedGeneration >= d.Generation && now.UpdatedReplicas == want && now.Replicas == want && now.AvailableReplicas == want
}
