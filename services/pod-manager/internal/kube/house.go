package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// keepHouse looks for what belongs to nobody, at the start and from time to time.
func (c *Cluster) keepHouse(ctx context.Context) {
	ticker := time.NewTicker(c.config.ScanInterval)
	defer ticker.Stop()
	select {
	case <-c.synced:
	case <-ctx.Done():
		return
	}
	soon := time.After(servingTime) // for pods that are too young now to be without a Service
	for {
		c.clean()
		select {
		case <-soon:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// clean has the chores done that there are now.
func (c *Cluster) clean() {
	now := c.config.Clock.Theirs(c.config.Clock.Now())
	todo := plan(now, list[*corev1.Pod](c.pods.GetStore().List()), list[*corev1.Service](c.services.GetStore().List()))
	for _, service := range todo.orphans {
		c.chore(service.Name, func(ctx context.Context) { c.collect(ctx, service) })
	}
	for _, pod := range todo.undated {
		c.chore(pod.Labels[podspec.LabelID], func(ctx context.Context) { c.date(ctx, pod, now) })
	}
	for _, pod := range todo.overdue {
		c.chore(pod.Labels[podspec.LabelID], func(ctx context.Context) { c.evict(ctx, pod) })
	}
	if c.config.PodIP {
		return
	}
	for _, pod := range todo.lonely {
		c.serve(pod)
	}
}

// chore has something done in line with the actions on the pods with an id.
func (c *Cluster) chore(id string, do func(context.Context)) {
	c.tasks.add(id, func(ctx context.Context, _ func(pool.Event)) { do(ctx) })
}

// collect deletes a Service without a pod. The Kubernetes API has the last word: a pod
// may have been created of which nothing was seen yet.
func (c *Cluster) collect(ctx context.Context, service *corev1.Service) {
	var pods *corev1.PodList
	err := retry(ctx, func(ctx context.Context) (err error) {
		pods, err = c.config.Client.CoreV1().Pods(c.config.Namespace).List(ctx, metav1.ListOptions{LabelSelector: podspec.LabelID + "=" + service.Name, Limit: 1})
		return err
	})
	if err != nil || len(pods.Items) > 0 {
		return // if it is still an orphan then, the next scan finds it again
	}
	c.log.InfoContext(ctx, "deleting a Service without a pod", "service", service.Name)
	c.removeService(ctx, service.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &service.UID}})
}

// foreignTTL is how long a pod of another function runner lives that does not say it:
// as long as there by default.
const foreignTTL = 30 * time.Minute

// date gives a pod of another function runner an end.
func (c *Cluster) date(ctx context.Context, pod *corev1.Pod, now time.Time) {
	if err := c.extend(ctx, pod.Name, pod.UID, now.Add(foreignTTL)); err != nil && !gone(err) && ctx.Err() == nil {
		c.log.WarnContext(ctx, "a pod of another function runner cannot be given an end", "pod", pod.Name, "error", err)
	}
}

// evict deletes a pod of another function runner, unless it was used meanwhile.
func (c *Cluster) evict(ctx context.Context, pod *corev1.Pod) {
	c.log.InfoContext(ctx, "deleting a pod that another function runner left behind", "pod", pod.Name)
	if err := c.removePod(ctx, pod.Name, pod.UID, pod.ResourceVersion); err != nil && !gone(err) && ctx.Err() == nil {
		c.log.WarnContext(ctx, "a pod that another function runner left behind stays for now", "pod", pod.Name, "error", err)
	}
}

// restore makes a Service again that somebody deleted while its pod lives.
func (c *Cluster) restore(service *corev1.Service) {
	for _, pod := range c.podsOf(service.Name) {
		if _, ours := podspec.Identify(pod); ours && pod.DeletionTimestamp == nil {
			c.serve(pod)
			return
		}
	}
}

// serve gives a pod a Service, unless the pod is about to go.
func (c *Cluster) serve(pod *corev1.Pod) {
	identity, _ := podspec.Identify(pod)
	c.chore(identity.ID, func(ctx context.Context) {
		if _, going := c.going.Load(pod.UID); going {
			return // it goes together with its pod
		}
		if known := c.latest(pod); known.DeletionTimestamp != nil || c.pod(pod.Name) == nil || c.service(identity.ID) != nil {
			return
		}
		template := c.config.Templates.Current()
		if template.Version() == "" {
			return // the next scan finds it again
		}
		c.log.WarnContext(ctx, "making a Service again that is missing", "service", identity.ID, "pod", pod.Name)
		_, err := c.createService(ctx, c.config.Builder.Service(podspec.Request{
			Function: podspec.Function{Reference: identity.Reference, Digest: identity.Digest},
			Template: template, Name: pod.Name, Slot: identity.Slot,
		}))
		if err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "a pod is without its Service for now", "service", identity.ID, "pod", pod.Name, "error", err)
		}
	})
}
