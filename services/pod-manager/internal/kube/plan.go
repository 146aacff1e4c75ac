// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// garbage is what the garbage collection found, by what it has to do.
type garbage struct {
	orphans     []*corev1.Service // to be deleted: they have no pod
	serviceless []*corev1.Pod     // ours, to be given a Service
	undated     []*corev1.Pod     // another runner's, to be given an expiry
	overdue     []*corev1.Pod     // another runner's, to be deleted
}

// Pods and Services are created at the same time, and not all is seen at once.
const (
	// settlingTime is how old a Service has to be before its pod counts as missing.
	settlingTime = time.Minute
	// servingTime is how old a pod has to be before its Service counts as missing. It is
	// short: the replica that created the pod may have been killed in between, and callers
	// wait. A Service that another replica has just created is not created twice.
	servingTime = 5 * time.Second
)

// plan finds the garbage among all pods and Services in the informers.
func plan(now time.Time, pods []*corev1.Pod, services []*corev1.Service) garbage {
	var todo garbage
	served := make(map[string]bool, len(services))
	for _, s := range services {
		served[s.Name] = true
	}
	inhabited := make(map[string]bool, len(pods))
	for _, pod := range pods {
		inhabited[pod.Labels[podspec.LabelID]] = true
		todo.look(now, pod, served)
	}
	for _, s := range services {
		settled := s.DeletionTimestamp == nil && now.Sub(s.CreationTimestamp.Time) >= settlingTime
		if settled && isPodService(s) && !inhabited[s.Name] {
			todo.orphans = append(todo.orphans, s)
		}
	}
	return todo
}

// look adds a pod to what has to be done about it. A pod of Porch's function runner is deleted
// at the expiry in its annotation, as that runner would: it extends the expiry when it uses
// the pod. A pod without an expiry gets one first.
func (todo *garbage) look(now time.Time, pod *corev1.Pod, served map[string]bool) {
	o, ours := podspec.Identify(pod)
	switch {
	case pod.DeletionTimestamp != nil: // it is being deleted already
	case ours:
		if !served[pod.Labels[podspec.LabelID]] && now.Sub(o.Created) >= servingTime {
			todo.serviceless = append(todo.serviceless, pod)
		}
	case o.ReclaimAfter.IsZero():
		todo.undated = append(todo.undated, pod)
	case !now.Before(o.ReclaimAfter):
		todo.overdue = append(todo.overdue, pod)
	}
}

// isPodService reports whether a Service was made for one pod, by this program or by Porch's
// function runner: its name is the id that it selects. Other Services may have the label too,
// such as one that a user made for all pods of a function; they are left alone.
func isPodService(s *corev1.Service) bool {
	return s.Labels[podspec.LabelID] == s.Name && s.Spec.Selector[podspec.LabelID] == s.Name
}
