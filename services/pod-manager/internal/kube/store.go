// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// pod looks a pod up in what is known of them; nil if it is not there.
func (c *Cluster) pod(name string) *corev1.Pod {
	return known[*corev1.Pod](c.pods, c.config.Namespace, name)
}

// service returns a Service from the informer; nil if it is not there.
func (c *Cluster) service(id string) *corev1.Service {
	return known[*corev1.Service](c.services, c.config.Namespace, id)
}

func known[T any](informer cache.SharedIndexInformer, namespace, name string) T {
	object, _, err := informer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil {
		object = nil // it never is one, for a store in memory
	}
	found, _ := object.(T)
	return found
}

// podsOf returns the pods with an id.
func (c *Cluster) podsOf(id string) []*corev1.Pod {
	objects, err := c.pods.GetIndexer().ByIndex(byID, id)
	if err != nil {
		return nil // there is that index
	}
	return list[*corev1.Pod](objects)
}

// list returns the objects of an informer with their type.
func list[T any](objects []any) []T {
	typed := make([]T, 0, len(objects))
	for _, object := range objects {
		typed = append(typed, object.(T))
	}
	return typed
}
