// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// observe returns the pools' observation of a pod; false if it is not ours.
func (c *Cluster) observe(pod *corev1.Pod) (pool.Observation, bool) {
	o, ok := observation(pod)
	o.Problem = c.config.Trial.judge(pod, o.Problem)
	o.Created, o.ReclaimAfter = c.config.Clock.Ours(o.Created), c.config.Clock.Ours(o.ReclaimAfter)
	if !ok || pod.Status.PodIP == "" {
		return o, ok
	}
	if c.config.PodIP {
		o.Address = hostPort(pod.Status.PodIP)
		return o, true
	}
	id := pod.Labels[podspec.LabelID]
	service := c.service(id)
	if service == nil {
		return o, true
	}
	o.Address = hostPort(id + "." + c.config.Namespace + ".svc." + c.config.ClusterDomain)
	// Resolvers cache a failed lookup for seconds if it comes too early.
	if ip := service.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		o.HealthAddress = hostPort(ip)
	}
	return o, true
}

func hostPort(host string) string { return net.JoinHostPort(host, strconv.Itoa(podspec.Port)) }

// observation returns what a pod's object holds, without its address. Its times are the
// Kubernetes API's.
func observation(pod *corev1.Pod) (pool.Observation, bool) {
	identity, ok := podspec.Identify(pod)
	if !ok {
		return pool.Observation{}, false
	}
	status := podspec.Status(pod)
	return pool.Observation{
		Name: pod.Name, UID: string(pod.UID), ResourceVersion: pod.ResourceVersion,
		Function: pool.Function{Reference: identity.Reference, Digest: identity.Digest},
		Slot:     identity.Slot, TemplateVersion: identity.TemplateVersion, SettingsVersion: identity.SettingsVersion,
		Created: pod.CreationTimestamp.Time, ReclaimAfter: identity.ReclaimAfter,
		Phase: status.Phase, Reason: status.Reason, Node: status.Node,
		Deleting: status.Deleting, Problem: status.Problem,
	}, true
}
