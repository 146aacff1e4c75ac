// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// collectGarbage deletes Services without a pod, and creates the missing Services of pods. It scans once the informers
// are synced, again after 5 s (minPodAge), and then once per ScanInterval.
func (c *Cluster) collectGarbage(ctx context.Context) {
	ticker := time.NewTicker(c.config.ScanInterval)
	defer ticker.Stop()
	select {
	case <-c.synced:
	case <-ctx.Done():
		return
	}
	soon := time.After(minPodAge) // the first scan skips pods younger than minPodAge
	for {
		c.scanGarbage()
		select {
		case <-soon:
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// scanGarbage queues the deletion of Services without a pod, and the creation of pods' missing Services.
func (c *Cluster) scanGarbage() {
	now := c.config.Clock.Theirs(c.config.Clock.Now())
	podless, withoutService := findGarbage(now, toTyped[*corev1.Pod](c.pods.GetStore().List()),
		toTyped[*corev1.Service](c.services.GetStore().List()))
	// The function of a Service without a pod is unknown. The Service's name therefore determines the deleting replica.
	for _, service := range podless {
		c.enqueueGarbageTask(service.Name, func(ctx context.Context) { c.deletePodlessService(ctx, service) })
	}
	if c.config.PodIP {
		return
	}
	for _, pod := range withoutService {
		c.createMissingService(pod)
	}
}

// enqueueGarbageTask queues a background task for the Service named id if this replica owns the Service. A replica that
// cannot list the Leases of its peers owns no Services. Otherwise, all replicas would recreate a deleted Service, even
// if its pod is being deleted. Once the replica can list the Leases again, the next scan recreates the Service.
func (c *Cluster) enqueueGarbageTask(id string, do func(context.Context)) {
	if !c.config.Owns(id) {
		return
	}
	c.tasks.addLater(id, do)
}

// deletePodlessService deletes a Service without a pod. It first lists the Service's pods in the API server, because
// the informer may not have received a new pod yet.
func (c *Cluster) deletePodlessService(ctx context.Context, service *corev1.Service) {
	var pods *corev1.PodList
	selected := metav1.ListOptions{LabelSelector: podspec.LabelID + "=" + service.Name, Limit: 1}
	err := kubeclient.Retry(ctx, func(ctx context.Context) (err error) {
		pods, err = c.podsClient().List(ctx, selected)
		return err
	})
	if err != nil || len(pods.Items) > 0 {
		return // the next scan finds the Service again
	}
	c.log.InfoContext(ctx, "deleting a Service without a pod", "service", service.Name)
	c.removeService(ctx, service.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &service.UID}})
}

// recreateService recreates a Service that another client deleted, if the Service's pod still exists.
func (c *Cluster) recreateService(service *corev1.Service) {
	for _, pod := range c.podsOf(service.Name) {
		if _, ours := podspec.Identify(pod); ours && pod.DeletionTimestamp == nil {
			c.createMissingService(pod)
			return
		}
	}
}

// createMissingService queues a task that creates the missing Service of a pod, unless the pod is being deleted.
func (c *Cluster) createMissingService(pod *corev1.Pod) {
	id := pod.Labels[podspec.LabelID]
	c.enqueueGarbageTask(id, func(ctx context.Context) {
		if _, deleting := c.deleting.Load(pod.UID); deleting {
			return // the Service is deleted together with its pod
		}
		known := c.podByName(pod.Name)
		if known == nil || c.latestState(pod).DeletionTimestamp != nil || c.serviceByID(id) != nil {
			return
		}
		template := c.config.Templates.Current()
		if template.Version() == "" {
			return // the next scan finds the pod again
		}
		c.log.WarnContext(ctx, "creating the missing service of a pod", "service", id, "pod", pod.Name)
		if _, err := c.createService(ctx, c.config.Builder.ServiceOf(pod, template)); err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "pod has no service; garbage collection retries",
				"service", id, "pod", pod.Name, "error", err)
		}
	})
}

// Pods and Services are created concurrently, and their informers receive them at different times. A new pod or Service
// may therefore seem to lack its counterpart. It counts as garbage only after a minimum age.
const (
	// minServiceAge is the minimum age of a Service without a pod before it is deleted.
	minServiceAge = time.Minute
	// minPodAge is the minimum age of a pod before its missing Service is created. It is short, because callers may wait
	// for a pod whose creator crashed before it created the Service. If another replica creates the Service in the
	// meantime, this replica uses that Service.
	minPodAge = 5 * time.Second
)

// findGarbage returns old Services without a pod, and this program's old pods without a Service.
func findGarbage(now time.Time, pods []*corev1.Pod, services []*corev1.Service) (
	podless []*corev1.Service, withoutService []*corev1.Pod,
) {
	hasService := make(map[string]bool, len(services))
	for _, s := range services {
		hasService[s.Name] = true
	}
	hasPod := make(map[string]bool, len(pods))
	for _, pod := range pods {
		id := pod.Labels[podspec.LabelID]
		hasPod[id] = true
		o, ours := podspec.Identify(pod)
		if ours && pod.DeletionTimestamp == nil && !hasService[id] && now.Sub(o.Created) >= minPodAge {
			withoutService = append(withoutService, pod)
		}
	}
	for _, s := range services {
		oldEnough := s.DeletionTimestamp == nil && now.Sub(s.CreationTimestamp.Time) >= minServiceAge
		if oldEnough && isPodService(s) && !hasPod[s.Name] {
			podless = append(podless, s)
		}
	}
	return podless, withoutService
}

// isPodService reports whether the Service s selects a single pod by its id. This program and Porch's function runner
// create such Services, and use the pod's id as name, label and selector. Other Services with this label must not be
// deleted, for example a user's Service for all pods of a function.
func isPodService(s *corev1.Service) bool {
	return s.Labels[podspec.LabelID] == s.Name && s.Spec.Selector[podspec.LabelID] == s.Name
}
