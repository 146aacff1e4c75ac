// SPDX-License-Identifier: Apache-2.0

package kube

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// tellPod sends the status update of a pod. For a pod that is not ours it contains only that
// the pod occupies its id.
//
// The informers of pods and of Services and the answers to actions all cause updates, each at
// its own pace. So each update is built from the newest known state under a lock, and is never
// older than the one before.
func (c *Cluster) tellPod(tell func(pool.Event), pod *corev1.Pod) {
	c.telling.Lock()
	defer c.telling.Unlock()
	pod = c.latest(pod)
	if o, ok := c.observe(pod); ok {
		tell(pool.PodObserved{Observation: o})
	} else {
		tell(pool.ForeignObserved{Name: pod.Name, ID: pod.Labels[podspec.LabelID]})
	}
}

// tellProblem sends the status update of a pod that cannot serve for a reason that its own
// status does not show.
func (c *Cluster) tellProblem(tell func(pool.Event), pod *corev1.Pod, problem pool.Problem) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if o, ok := c.observe(c.latest(pod)); ok {
		o.Problem = problem
		tell(pool.PodObserved{Observation: o})
	}
}

// tellGone sends the update that a pod does not exist any more.
func (c *Cluster) tellGone(tell func(pool.Event), pod *corev1.Pod) {
	c.going.Delete(pod.UID)
	c.telling.Lock()
	defer c.telling.Unlock()
	tell(pool.PodGone{Name: pod.Name, UID: string(pod.UID)})
}

// tellPodsOf sends the status updates of the pods of a Service.
func (c *Cluster) tellPodsOf(tell func(pool.Event), service *corev1.Service) {
	c.telling.Lock()
	defer c.telling.Unlock()
	for _, pod := range c.podsOf(service.Name) { // no PodGone was sent for any of them
		if o, ok := c.observe(pod); ok {
			tell(pool.PodObserved{Observation: o})
		}
	}
}

// latest returns the newest known state of a pod.
func (c *Cluster) latest(pod *corev1.Pod) *corev1.Pod {
	if known := c.pod(pod.Name); known != nil && known.UID == pod.UID {
		return known
	}
	return pod
}
