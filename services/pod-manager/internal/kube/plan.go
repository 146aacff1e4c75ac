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
		id := pod.Labels[podspec.LabelID]
		hasPod[id] = true
		o, ours := podspec.Identify(pod)
		if ours && pod.DeletionTimestamp == nil && !hasService[id] && now.Sub(o.Created) >= minPodAge {
			found.withoutService = append(found.withoutService, pod)
		}
	}
	for _, s := range services {
		oldEnough := s.DeletionTimestamp == nil && now.Sub(s.CreationTimestamp.Time) >= minServiceAge
		if oldEnough && isPodService(s) && !hasPod[s.Name] {
			found.podlessServices = append(found.podlessServices, s)
		}
	}
	return found
}

// isPodService reports whether a Service was made for one pod, by this program or by Porch's
// function runner: its name is the id that it selects. Other Services may have the label too,
// such as one that a user made for all pods of a function; they are left alone.
func isPodService(s *corev1.Service) bool {
	return s.Labels[podspec.LabelID] == s.Name && s.Spec.Selector[podspec.LabelID] == s.Name
}
