package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// keepHouse looks for what belongs to nobody, from time to time.
func (c *Cluster) keepHouse(ctx context.Context) {
	ticker := time.NewTicker(c.config.ScanInterval)
	defer ticker.Stop()
	select {
	case <-c.synced:
	case <-ctx.Done():
		return
	}
	for {
		c.clean(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// clean removes orphaned Services, and the pods that Porch's own function runner left
// behind once their time has come.
func (c *Cluster) clean(ctx context.Context) {
	now := time.Now()
	if c.services != nil {
		for _, id := range orphans(now, list[*corev1.Service](c.services.GetStore().List()), func(id string) bool { return len(c.podsOf(id)) > 0 }) {
			c.log.InfoContext(ctx, "deleting a Service without a pod", "service", id)
			c.tasks.add("service/"+id, func(ctx context.Context, _ func(pool.Event)) { c.removeServiceOf(ctx, id, "") })
		}
	}
	for _, pod := range list[*corev1.Pod](c.pods.GetStore().List()) {
		if _, ours := podspec.Identify(pod); ours || pod.DeletionTimestamp != nil {
			continue
		}
		c.cleanForeign(ctx, now, pod)
	}
}

// orphanAge is how old a Service without a pod has to be before it is one that was
// left behind: it is created together with its pod, of which nothing may be known yet.
const orphanAge = time.Minute

// orphans returns the names of the Services that have no pod.
func orphans(now time.Time, services []*corev1.Service, hasPod func(id string) bool) []string {
	var names []string
	for _, s := range services {
		if s.DeletionTimestamp == nil && now.Sub(s.CreationTimestamp.Time) >= orphanAge && !hasPod(s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// foreignTTL is how long a pod of Porch's function runner lives that does not say it.
const foreignTTL = 30 * time.Minute

// cleanForeign deletes a pod with our label that is not ours once its own time is up,
// as the runner that made it would have. One that does not say when gets a time.
func (c *Cluster) cleanForeign(_ context.Context, now time.Time, pod *corev1.Pod) {
	identity, _ := podspec.Identify(pod)
	name, uid, version := pod.Name, pod.UID, pod.ResourceVersion
	switch {
	case identity.ReclaimAfter.IsZero():
		c.tasks.add(name, func(ctx context.Context, _ func(pool.Event)) {
			if err := c.extend(ctx, name, string(uid), now.Add(foreignTTL)); err != nil && ctx.Err() == nil {
				c.log.WarnContext(ctx, "a pod of another function runner cannot be given an end", "pod", name, "error", err)
			}
		})
	case !now.Before(identity.ReclaimAfter):
		c.tasks.add(name, func(ctx context.Context, _ func(pool.Event)) {
			c.log.InfoContext(ctx, "deleting a pod that another function runner left behind", "pod", name)
			options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
			err := c.remove(ctx, name, options)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
				c.log.WarnContext(ctx, "a pod that another function runner left behind stays for now", "pod", name, "error", err)
			}
		})
	}
}

// restore creates a Service again that somebody deleted while its pod lives.
func (c *Cluster) restore(service *corev1.Service) {
	for _, pod := range c.podsOf(service.Name) {
		if pod.DeletionTimestamp != nil {
			continue
		}
		c.tasks.add(pod.Name, func(ctx context.Context, _ func(pool.Event)) {
			if _, going := c.going.Load(pod.UID); going {
				return // it goes together with its pod
			}
			if current, ok := c.pod(pod.Name); !ok || current.DeletionTimestamp != nil {
				return
			}
			c.log.WarnContext(ctx, "creating a Service again that somebody deleted", "service", service.Name)
			if err := c.createService(ctx, again(service)); err != nil && ctx.Err() == nil {
				c.log.ErrorContext(ctx, "a pod is without its Service", "service", service.Name, "error", err)
			}
		})
		return
	}
}

// again returns a Service to be created in place of one that is gone.
func again(gone *corev1.Service) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: gone.Name, Labels: gone.Labels, Annotations: gone.Annotations},
		Spec:       *gone.Spec.DeepCopy(),
	}
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil // it gets a new one
	return service
}

// pod looks a pod up in what is known of them.
func (c *Cluster) pod(name string) (*corev1.Pod, bool) {
	object, ok, err := c.pods.GetStore().GetByKey(c.config.Namespace + "/" + name)
	if err != nil || !ok {
		return nil, false
	}
	return object.(*corev1.Pod), true
}

// list returns the objects of a store as what they are.
func list[T any](objects []any) []T {
	typed := make([]T, 0, len(objects))
	for _, object := range objects {
		typed = append(typed, object.(T))
	}
	return typed
}
