// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// fieldManager names the tests in server-side apply. The API server records it as the owner of fields that they set.
const fieldManager = "function-runner-e2e"

// Apply applies objects by server-side apply. If dryRun is true, the API server only validates them.
func (s *Suite) Apply(ctx context.Context, t testing.TB, dryRun bool, objects ...*unstructured.Unstructured) {
	t.Helper()
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	for _, object := range objects {
		if _, err := s.resourceOf(t, object).Apply(ctx, object.GetName(), object, options); err != nil {
			t.Errorf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// Dynamic returns a client for objects of any kind.
func (s *Suite) Dynamic() dynamic.Interface { return s.objects }

// resourceOf returns a client for the kind and the namespace of an object.
func (s *Suite) resourceOf(t testing.TB, object *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatalf("find the resource of %s: %v", gvk, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return s.objects.Resource(mapping.Resource)
	}
	return s.objects.Resource(mapping.Resource).Namespace(object.GetNamespace())
}

// AwaitRollout waits until all pods of a Deployment have its current template and are ready.
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
		t.Fatalf("wait for deployment %s: %v; it is %+v", name, err, last)
	}
}

func rolledOut(d *appsv1.Deployment) bool {
	want, now := *d.Spec.Replicas, d.Status
	return now.ObservedGeneration >= d.Generation && now.UpdatedReplicas == want && now.Replicas == want &&
		now.AvailableReplicas == want
}
