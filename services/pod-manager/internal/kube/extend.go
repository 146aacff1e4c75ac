// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Extend writes a pod's expiry into its annotation. A later call replaces one that still
// waits, as all do while the Kubernetes API is unavailable.
func (c *Cluster) Extend(action pool.Extend) {
	if _, waits := c.extensions.Swap(action.Name, action); waits {
		return
	}
	c.tasks.add(podname.ID(action.Name), func(ctx context.Context, _ func(pool.Event)) {
		if newest, ok := c.extensions.LoadAndDelete(action.Name); ok {
			action = newest.(pool.Extend)
		}
		start := time.Now()
		err := c.extend(ctx, action.Name, types.UID(action.UID), c.config.Clock.Theirs(action.ReclaimAfter))
		c.metrics.did(ctx, "extend", start, err)
		if err != nil && !gone(err) && ctx.Err() == nil {
			c.log.WarnContext(ctx, "pod expiry not extended; another replica may delete the pod too early",
				"pod", action.Name, "error", err)
		}
	})
}

// extend patches the annotation, with a time of the Kubernetes API. The UID in the patch makes
// it fail on another pod of the same name.
func (c *Cluster) extend(ctx context.Context, name string, uid types.UID, until time.Time) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, uid, podspec.AnnotationReclaimAfter, strconv.FormatInt(until.Unix(), 10))
	return withRetries(ctx, func(ctx context.Context) error {
		_, err := c.config.Client.CoreV1().Pods(c.config.Namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: podspec.FieldManager})
		return err
	})
}

// gone reports whether an error means that the pod does not exist any more, or has changed
// since the action on it was decided.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
