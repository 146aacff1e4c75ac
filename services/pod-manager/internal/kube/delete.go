// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Delete deletes a pod and its Service.
func (c *Cluster) Delete(action pool.Delete) {
	id := podname.PodID(action.Function.Reference, action.Function.Digest, action.Slot)
	uid := types.UID(action.UID)
	c.tasks.add(podname.ID(action.Name), func(ctx context.Context, tell func(pool.Event)) {
		start := time.Now()
		c.going.Store(uid, struct{}{})
		err := c.removePod(ctx, action.Name, uid, action.ResourceVersion)
		c.metrics.did(ctx, "delete", start, err)
		switch {
		case apierrors.IsNotFound(err):
			c.going.Delete(uid)
			tell(pool.PodGone{Name: action.Name, UID: action.UID})
		case err != nil:
			c.going.Delete(uid)
			tell(pool.DeleteFailed{Name: action.Name, UID: action.UID, Reason: err.Error()})
			return
		}
		c.removeServiceOf(ctx, id, uid)
	})
}

// briefly is how long a pod may take to end that has not run, in seconds. The kernel drops
// signals for the first process of a container until that can take them: a pod that is
// deleted right when it starts would live for its whole grace period, which is that of the
// longest evaluation. Should another replica already use the pod, it has that long.
const briefly = 30

// grace is how long a pod has to end; nil for its own time.
func grace(pod *corev1.Pod, uid types.UID) *int64 {
	if pod == nil || pod.UID != uid || slices.ContainsFunc(pod.Status.ContainerStatuses, hasRun) {
		return nil
	}
	if own := pod.Spec.TerminationGracePeriodSeconds; own == nil || *own <= briefly {
		return nil
	}
	return new(int64(briefly))
}

// hasRun reports whether a container's status shows that it has run. The status lags a moment behind.
func hasRun(c corev1.ContainerStatus) bool {
	return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
}

// removePod deletes a pod if it is still the one with this UID, and has this version;
// each may be empty for any.
func (c *Cluster) removePod(ctx context.Context, name string, uid types.UID, version string) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{}, GracePeriodSeconds: grace(c.pod(name), uid)}
	if uid != "" {
		options.Preconditions.UID = &uid
	}
	if version != "" {
		options.Preconditions.ResourceVersion = &version
	}
	return withRetries(ctx, func(ctx context.Context) error {
		return c.config.Client.CoreV1().Pods(c.config.Namespace).Delete(ctx, name, options)
	})
}

// removeServiceOf deletes the Service of a pod that is deleted, unless another pod uses it.
func (c *Cluster) removeServiceOf(ctx context.Context, id string, pod types.UID) {
	if c.config.PodIP && c.service(id) == nil {
		return
	}
	for _, other := range c.podsOf(id) {
		if other.UID != pod && other.DeletionTimestamp == nil {
			return
		}
	}
	c.removeService(ctx, id, metav1.DeleteOptions{})
}

// removeService deletes a Service. A missing one counts as deleted, and garbage collection
// deletes later what cannot be deleted now.
func (c *Cluster) removeService(ctx context.Context, id string, options metav1.DeleteOptions) {
	err := withRetries(ctx, func(ctx context.Context) error {
		return c.config.Client.CoreV1().Services(c.config.Namespace).Delete(ctx, id, options)
	})
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		c.log.WarnContext(ctx, "service not deleted; garbage collection tries again", "service", id, "error", err)
	}
}
