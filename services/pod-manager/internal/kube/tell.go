package kube

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// tellPod tells what Kubernetes says about a pod. Of one that is not ours it is told that
// it has its id.
//
// The views of pods and of Services and the answers to actions all have something to
// say about it, each at its own pace. So whoever speaks says what is known last, which
// is never older than what was said before: one after the other.
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

// tellProblem tells about a pod that cannot serve for a reason that it does not know
// itself.
func (c *Cluster) tellProblem(tell func(pool.Event), pod *corev1.Pod, problem pool.Problem) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if o, ok := c.observe(c.latest(pod)); ok {
		o.Problem = problem
		tell(pool.PodObserved{Observation: o})
	}
}

// tellGone tells that a pod is no more.
func (c *Cluster) tellGone(tell func(pool.Event), pod *corev1.Pod) {
	c.going.Delete(pod.UID)
	c.telling.Lock()
	defer c.telling.Unlock()
	tell(pool.PodGone{Name: pod.Name, UID: string(pod.UID)})
}

// tellPodsOf tells about the pods of a Service.
func (c *Cluster) tellPodsOf(tell func(pool.Event), service *corev1.Service) {
	c.telling.Lock()
	defer c.telling.Unlock()
	for _, pod := range c.podsOf(service.Name) { // none of which has been told to be gone
		if o, ok := c.observe(pod); ok {
			tell(pool.PodObserved{Observation: o})
		}
	}
}

// latest returns what is known last of a pod.
func (c *Cluster) latest(pod *corev1.Pod) *corev1.Pod {
	if known := c.pod(pod.Name); known != nil && known.UID == pod.UID {
		return known
	}
	return pod
}
