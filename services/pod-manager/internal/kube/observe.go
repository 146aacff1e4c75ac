// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// sendPod sends the current state of a pod to the pools. For a pod of another program, it sends only the name and the
// id, which new pods must not use. A lock keeps the states in order if sendPod is called concurrently.
func (c *Cluster) sendPod(pod *corev1.Pod) {
	c.sending.Lock()
	defer c.sending.Unlock()
	pod = c.latestState(pod)
	if o, ok := c.observePod(pod); ok {
		c.config.Send(pool.PodObserved{Observation: o})
	} else {
		c.config.Send(pool.ForeignObserved{Name: pod.Name, ID: pod.Labels[podspec.LabelID]})
	}
}

// sendProblem sends a pod's state with an additional problem. For example, the pod's Service may be missing.
func (c *Cluster) sendProblem(pod *corev1.Pod, problem pool.Problem) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if o, ok := c.observePod(c.latestState(pod)); ok {
		o.Problem = problem
		c.config.Send(pool.PodObserved{Observation: o})
	}
}

// sendGone tells the pools that a pod no longer exists.
func (c *Cluster) sendGone(pod *corev1.Pod) {
	c.deleting.Delete(pod.UID)
	c.sending.Lock()
	defer c.sending.Unlock()
	c.config.Send(pool.PodGone{Name: pod.Name, UID: string(pod.UID)})
}

// sendPodsOf sends the states of a Service's pods to the pools, because the address of a pod depends on its Service.
func (c *Cluster) sendPodsOf(service *corev1.Service) {
	c.sending.Lock()
	defer c.sending.Unlock()
	for _, pod := range c.podsOf(service.Name) { // existing pods only, so that no state follows PodGone
		if o, ok := c.observePod(pod); ok {
			c.config.Send(pool.PodObserved{Observation: o})
		}
	}
}

// latestState returns the informer's version of a pod, or the pod itself if the informer does not contain it.
func (c *Cluster) latestState(pod *corev1.Pod) *corev1.Pod {
	if known := c.podByName(pod.Name); known != nil && known.UID == pod.UID {
		return known
	}
	return pod
}

// observePod converts a pod to an observation for the pools. It returns false for a pod of another program.
func (c *Cluster) observePod(pod *corev1.Pod) (pool.Observation, bool) {
	o, ours := podspec.Observe(pod)
	if !ours {
		return o, false
	}
	o.Problem = c.config.Launching.classifyLaunchFailure(pod, o.Problem)
	o.Created = c.config.Clock.Ours(o.Created)
	o.ReclaimAfter = c.config.Clock.Ours(o.ReclaimAfter)
	if pod.Status.PodIP == "" {
		return o, true
	}
	if c.config.PodIP {
		o.Address = hostPort(pod.Status.PodIP)
		return o, true
	}
	id := pod.Labels[podspec.LabelID]
	service := c.serviceByID(id)
	if service == nil {
		return o, true
	}
	o.Address = hostPort(id + "." + c.config.Namespace + serviceDomain)
	// Probes use the Service's IP address instead of its DNS name, because DNS resolvers cache a failed lookup for
	// seconds.
	if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		o.HealthAddress = hostPort(ip)
	}
	return o, true
}

// serviceDomain is the DNS domain of Services, the same as in Porch. If a cluster uses another domain, gateways must
// reach pods by the pods' IP addresses ([Config.PodIP]).
const serviceDomain = ".svc.cluster.local"

func hostPort(host string) string { return net.JoinHostPort(host, strconv.Itoa(podspec.Port)) }

// podByName returns a pod from the informer, or nil if the informer does not contain the pod.
func (c *Cluster) podByName(name string) *corev1.Pod {
	return lookUp[*corev1.Pod](c.pods, c.config.Namespace, name)
}

// serviceByID returns the Service of the pod with this id. It is nil if the informer does not contain the Service.
func (c *Cluster) serviceByID(id string) *corev1.Service {
	return lookUp[*corev1.Service](c.services, c.config.Namespace, id)
}

func lookUp[T any](informer cache.SharedIndexInformer, namespace, name string) T {
	object, _, err := informer.GetStore().GetByKey(namespace + "/" + name)
	if err != nil {
		object = nil // cannot happen: a store in memory returns no errors
	}
	found, _ := object.(T)
	return found
}

func (c *Cluster) podsOf(id string) []*corev1.Pod {
	objects, err := c.pods.GetIndexer().ByIndex(byID, id)
	if err != nil {
		return nil // cannot happen: New adds the index
	}
	return toTyped[*corev1.Pod](objects)
}

// toTyped converts the objects of an informer's store to their Go type.
func toTyped[T any](objects []any) []T {
	typed := make([]T, 0, len(objects))
	for _, object := range objects {
		typed = append(typed, object.(T))
	}
	return typed
}
