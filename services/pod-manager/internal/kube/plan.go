// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// garbage is what the garbage collection found, by what it has to do.
type garbage struct {
	podlessServices []*corev1.Service // to be deleted: they have no pod
	withoutService  []*corev1.Pod     // ours, to be given a Service
	withoutExpiry   []*corev1.Pod     // another runner's, to be given an expiry
	expired         []*corev1.Pod     // another runner's, to be deleted
}

// Pods and Services are created at the same time, and not all is seen at once.
const (
	// minServiceAge is how old a Service has to be before its pod counts as missing.
	minServiceAge = time.Minute
	// minPodAge is how old a pod has to be before its Service counts as missing. It is
	// short: the replica that created the pod may have been killed in between, and callers
	// wait. A Service that another replica has just created is not created twice.
	minPodAge = 5 * time.Second
)

// plan finds the garbage among all pods and Services in the informers.
func plan(now time.Time, pods []*corev1.Pod, services []*corev1.Service) garbage {
	var found garbage
	hasService := make(map[string]bool, len(services))
	for _, s := range services {
		hasService[s.Name] = true
	}
	hasPod := make(map[string]bool, len(pods))
	for _, pod := range pods {
		hasPod[pod.Labels[podspec.LabelID]] = true
		found.classify(now, pod, hasService)
	}
	for _, s := range services {
		oldEnough := s.DeletionTimestamp == nil && now.Sub(s.CreationTimestamp.Time) >= minServiceAge
		if oldEnough && isPodService(s) && !hasPod[s.Name] {
			found.podlessServices = append(found.podlessServices, s)
		}
	}
	return found
}

// classify adds a pod to what has to be done about it. A pod of Porch's function runner is deleted
// at the expiry in its annotation, as that runner would: it extends the expiry when it uses
// the pod. A pod without an expiry gets one first.
func (g *garbage) classify(now time.Time, pod *corev1.Pod, hasService map[string]bool) {
	o, ours := podspec.Identify(pod)
	switch {
	case pod.DeletionTimestamp != nil: // it is being deleted already
	case ours:
		if !hasService[pod.Labels[podspec.LabelID]] && now.Sub(o.Created) >= minPodAge {
			g.withoutService = append(g.withoutService, pod)
		}
	case o.ReclaimAfter.IsZero():
		g.withoutExpiry = append(g.withoutExpiry, pod)
	case !now.Before(o.ReclaimAfter):
		g.expired = append(g.expired, pod)
	}
}

// isPodService reports whether a Service was made for one pod, by this program or by Porch's
// function runner: its name is the id that it selects. Other Services may have the label too,
// such as one that a user made for all pods of a function; they are left alone.
func isPodService(s *corev1.Service) bool {
	return s.Labels[podspec.LabelID] == s.Name && s.Spec.Selector[podspec.LabelID] == s.Name
}
