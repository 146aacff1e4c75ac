// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// garbage contains the results of a scan: Services without a pod, and pods without a Service.
type garbage struct {
	podlessServices []*corev1.Service // to delete
	withoutService  []*corev1.Pod     // pods of this program that need a Service
}

// Pods and Services are created concurrently, and informers receive them one after another. So a pod or Service
// without its counterpart is garbage only if it has reached a minimum age.
const (
	// minServiceAge is the minimum age of a Service without a pod before it is deleted.
	minServiceAge = time.Minute
	// minPodAge is the minimum age of a pod without a Service before the Service is created. It is short, because
	// callers wait if the replica that created the pod crashed before it created the Service. If another replica
	// creates the Service in the meantime, that Service is used.
	minPodAge = 5 * time.Second
)

// findGarbage returns the Services without a pod and the pods without a Service among the informers' objects.
func findGarbage(now time.Time, pods []*corev1.Pod, services []*corev1.Service) garbage {
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

// isPodService reports whether this program or Porch's function runner created the Service s for a single pod. Such a
// Service is named like the pod's id, which its label and its selector contain. Other Services with this label, such
// as a user's Service for all pods of a function, must not be deleted.
func isPodService(s *corev1.Service) bool {
	return s.Labels[podspec.LabelID] == s.Name && s.Spec.Selector[podspec.LabelID] == s.Name
}
