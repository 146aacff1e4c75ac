// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Extend writes a pod's new expiry into the pod's annotation, in the background. Extensions wait while the
// Kubernetes API is unavailable. A later call for the same pod replaces the waiting extension.
func (c *Cluster) Extend(action pool.Extend) {
	if _, waits := c.extensions.Swap(action.Name, action); waits {
		return
	}
	c.tasks.addLater(podname.ID(action.Name), func(ctx context.Context, _ func(pool.Event)) {
		if newest, ok := c.extensions.LoadAndDelete(action.Name); ok {
			action = newest.(pool.Extend)
		}
		start := time.Now()
		err := c.patchExpiry(ctx, action.Name, types.UID(action.UID), c.config.Clock.Theirs(action.ReclaimAfter))
		c.metrics.recordAction(ctx, "extend", start, err)
		if err != nil && !isGone(err) && ctx.Err() == nil {
			c.log.WarnContext(ctx, "pod expiry not extended; another replica may delete the pod too early",
				"pod", action.Name, "error", err)
		}
	})
}

// patchExpiry writes a pod's expiry into its annotation. until is a time of the API server's clock. The patch
// contains the UID, so that it fails if another pod with the same name has replaced the pod.
func (c *Cluster) patchExpiry(ctx context.Context, name string, uid types.UID, until time.Time) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"%d"}}}`,
		uid, podspec.AnnotationReclaimAfter, until.Unix())
	options := metav1.PatchOptions{FieldManager: podspec.FieldManager}
	return kubeclient.Retry(ctx, func(ctx context.Context) error {
		_, err := c.podsClient().Patch(ctx, name, types.MergePatchType, patch, options)
		return err
	})
}

// isGone reports whether a request failed because the pod no longer exists, or because another pod uses its name.
func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

// Delete deletes a pod and its Service in the background. If another replica has become the owner of the function
// in the meantime, it reports a failed deletion instead.
func (c *Cluster) Delete(action pool.Delete) {
	id := podname.PodID(action.Function.Reference, action.Function.Digest, action.Slot)
	uid := types.UID(action.UID)
	c.tasks.add(podname.ID(action.Name), func(ctx context.Context, send func(pool.Event)) {
		if !action.Foreign && !c.ownsImage(action.Function.Reference) { // ownership may have changed while the task waited
			send(pool.DeleteFailed{Name: action.Name, UID: action.UID, Reason: "another replica owns the function"})
			return
		}
		start := time.Now()
		c.deleting.Store(uid, struct{}{})
		err := c.removePod(ctx, action.Name, uid)
		c.metrics.recordAction(ctx, "delete", start, err)
		switch {
		case apierrors.IsNotFound(err):
			c.deleting.Delete(uid)
			send(pool.PodGone{Name: action.Name, UID: action.UID})
		case err != nil:
			c.deleting.Delete(uid)
			send(pool.DeleteFailed{Name: action.Name, UID: action.UID, Reason: err.Error()})
			return
		}
		c.removeServiceOf(ctx, id, uid)
	})
}

// ownsImage reports whether this replica currently owns an image's function.
func (c *Cluster) ownsImage(image string) bool { return c.config.Owns == nil || c.config.Owns(image) }

// startingGrace limits the grace period, in seconds, of deleting a pod that has not run yet. Such a pod may miss
// the stop signal, because the kernel drops signals to a container's first process until the process has registered
// a handler. It would then live for its whole grace period, which is longer than the longest evaluation. The limit
// is not lower, because another replica may already use the pod.
const startingGrace = 30

// shortGracePeriod returns startingGrace for a pod that has not run yet and has a longer grace period. For other
// pods, it returns nil, so that their own grace period applies.
func shortGracePeriod(pod *corev1.Pod, uid types.UID) *int64 {
	if pod == nil || pod.UID != uid || slices.ContainsFunc(pod.Status.ContainerStatuses, hasRun) {
		return nil
	}
	if own := pod.Spec.TerminationGracePeriodSeconds; own == nil || *own <= startingGrace {
		return nil
	}
	return new(int64(startingGrace))
}

// hasRun reports whether a container runs or has run, according to the informer, which may be a moment behind.
func hasRun(c corev1.ContainerStatus) bool {
	return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
}

// removePod deletes a pod if it has this UID. With an empty UID, it deletes any pod of that name.
func (c *Cluster) removePod(ctx context.Context, name string, uid types.UID) error {
	options := metav1.DeleteOptions{
		Preconditions:      &metav1.Preconditions{},
		GracePeriodSeconds: shortGracePeriod(c.podByName(name), uid),
	}
	if uid != "" {
		options.Preconditions.UID = &uid
	}
	return kubeclient.Retry(ctx, func(ctx context.Context) error {
		return c.podsClient().Delete(ctx, name, options)
	})
}

// removeServiceOf deletes the Service of a deleted pod, unless another pod uses the Service.
func (c *Cluster) removeServiceOf(ctx context.Context, id string, pod types.UID) {
	if c.config.PodIP && c.serviceByID(id) == nil {
		return
	}
	for _, other := range c.podsOf(id) {
		if other.UID != pod && other.DeletionTimestamp == nil {
			return
		}
	}
	c.removeService(ctx, id, metav1.DeleteOptions{})
}

// removeService deletes a Service, if the Service exists. Garbage collection retries failed deletions.
func (c *Cluster) removeService(ctx context.Context, id string, options metav1.DeleteOptions) {
	err := kubeclient.Retry(ctx, func(ctx context.Context) error {
		return c.servicesClient().Delete(ctx, id, options)
	})
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		c.log.WarnContext(ctx, "service not deleted; garbage collection retries", "service", id, "error", err)
	}
}
