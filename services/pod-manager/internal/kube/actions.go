// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podname"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Create creates a pod and its Service.
func (c *Cluster) Create(action pool.Create, what podspec.Workload) {
	c.tasks.add(podname.ID(action.Name), func(ctx context.Context) {
		start := time.Now()
		err := c.createWorkload(ctx, action, what)
		c.metrics.recordAction(ctx, "create", start, err)
	})
}

// createWorkload creates a pod and its Service once a pod template exists, and reports the outcome to the pool.
func (c *Cluster) createWorkload(ctx context.Context, action pool.Create, what podspec.Workload) error {
	template, err := c.config.Templates.Await(ctx)
	if err != nil {
		problem := pool.Problem{Kind: pool.Lost, Reason: err.Error()}
		if fault.Of(err) == fault.Precondition {
			problem.Kind = pool.Fatal
		}
		c.config.Send(pool.CreateFailed{Name: action.Name, Problem: problem})
		return err
	}
	request := podspec.Request{
		Workload: what, Template: template, Name: action.Name, Slot: action.Slot,
		ReclaimAfter: c.config.Clock.Theirs(action.ReclaimAfter), Secret: rand.Text(),
	}
	created := c.createBoth(ctx, request)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.handleFailure(ctx, request, created)
	return errors.Join(created.podError, created.serviceError)
}

// creation is the result of creating a pod and its Service. The pod or the Service may have existed before.
type creation struct {
	pod                    *corev1.Pod
	podNew, serviceNew     bool
	podError, serviceError error
}

// createBoth creates a pod and its Service concurrently. It reports the new pod to the pool at once, even if the
// Service is still being created.
func (c *Cluster) createBoth(ctx context.Context, request podspec.Request) creation {
	var created creation
	var both sync.WaitGroup
	both.Go(func() {
		created.pod, created.podNew, created.podError = c.createPod(ctx, c.config.Builder.Pod(request))
		if created.pod != nil {
			c.sendPod(created.pod)
		}
	})
	if !c.config.PodIP {
		both.Go(func() {
			created.serviceNew, created.serviceError = c.createService(ctx, c.config.Builder.Service(request))
		})
	}
	both.Wait()
	return created
}

// handleFailure reports a failed creation of a pod or its Service to the pool. If the API server refused the pod,
// handleFailure also deletes the Service that was created for the pod.
func (c *Cluster) handleFailure(ctx context.Context, request podspec.Request, created creation) {
	switch {
	case created.podError != nil:
		c.config.Send(pool.CreateFailed{Name: request.Name, Problem: creationProblem(created.podError)})
		if created.serviceNew && !kubeclient.IsTransient(created.podError) {
			// The Service is new, so no other pod uses it.
			c.removeService(ctx, c.config.Builder.Service(request).Name, metav1.DeleteOptions{})
		}
	case created.serviceError != nil:
		// Report the missing Service as a problem of the existing pod. The pool may then delete the pod.
		problem := creationProblem(created.serviceError)
		switch {
		case !created.podNew && kubeclient.IsTransient(created.serviceError):
			problem.Kind = pool.Held // the Service may exist, or another replica may create it
		case problem.Kind == pool.Held:
			problem.Kind = pool.Lost
		case problem.Kind == pool.Full: // the pool makes room for pods, not for Services
			problem.Kind = pool.Fatal
		}
		c.sendProblem(created.pod, problem)
	}
}

// createPod creates a pod, or returns the existing pod with the same name. It returns both the pod and an error if the
// existing pod is being deleted.
func (c *Cluster) createPod(ctx context.Context, pod *corev1.Pod) (existing *corev1.Pod, isNew bool, err error) {
	pods := c.podsClient()
	err = kubeclient.Retry(ctx, func(ctx context.Context) error {
		created, createErr := pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		if createErr == nil {
			existing, isNew = created, true
			return nil
		}
		if !apierrors.IsAlreadyExists(createErr) {
			return markConflicts(createErr)
		}
		found, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return kubeclient.Transient(err) // the pod was deleted in between
		}
		if err != nil {
			return err
		}
		if _, ours := podspec.Identify(found); !ours {
			return fmt.Errorf("a pod of that name exists that this program did not create: %w", createErr)
		}
		existing = found
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("create pod %s: %w", pod.Name, err)
	}
	if existing.DeletionTimestamp != nil {
		deleting := fmt.Errorf("create pod %s: one of that name is being deleted", pod.Name)
		return existing, false, kubeclient.Transient(deleting)
	}
	return existing, isNew, nil
}

// createService creates a Service. It succeeds if a Service with the same name exists already.
func (c *Cluster) createService(ctx context.Context, service *corev1.Service) (isNew bool, err error) {
	err = kubeclient.Retry(ctx, func(ctx context.Context) error {
		_, err := c.servicesClient().Create(ctx, service, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		isNew = err == nil
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return markConflicts(err)
	})
	if err != nil {
		return false, fmt.Errorf("create Service %s: %w", service.Name, err)
	}
	return isNew, nil
}

// markConflicts marks temporary refusals by a ResourceQuota as transient, so that the creation is retried. There are
// two kinds. Concurrent creations conflict, because each of them updates the ResourceQuota object. A new ResourceQuota
// refuses pods until Kubernetes has counted the existing pods.
func markConflicts(err error) error {
	uncounted := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "status unknown for quota")
	if apierrors.IsConflict(err) || uncounted {
		return kubeclient.Transient(err)
	}
	return err
}

// quotaMessage is part of the API server's error message if a ResourceQuota is used up. The error's reason, Forbidden,
// does not identify this case, because other refusals have the same reason.
const quotaMessage = "exceeded quota"

// creationProblem converts the error of a failed creation to the problem that waiting callers see.
func creationProblem(err error) pool.Problem {
	if apierrors.IsUnauthorized(err) {
		// This replica's token is invalid once its own pod is force-deleted. Other replicas can still create function pods.
		return pool.Problem{
			Kind: pool.Lost, Unreachable: true,
			Reason: "the Kubernetes API does not accept this replica's token: " + err.Error(),
		}
	}
	if kubeclient.IsTransient(err) {
		problem := pool.Problem{
			Kind: pool.Held, Reason: "the Kubernetes API cannot do it now: " + err.Error(),
			Unreachable: errors.As(err, new(*url.Error)), // client-go returns this error if there was no response
		}
		if apierrors.IsInternalError(err) { // such as a failing webhook, which a user may have to change
			problem.Kind = pool.Lost
		}
		return problem
	}
	reason := "the Kubernetes API refuses it: " + err.Error()
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), quotaMessage) {
		return pool.Problem{Kind: pool.Full, Reason: reason}
	}
	return pool.Problem{Kind: pool.Fatal, Reason: reason}
}

// Extend writes a pod's new expiry to the pod's annotation in the background. While the Kubernetes API is unavailable,
// extensions wait. A later extension of the same pod replaces a waiting extension.
func (c *Cluster) Extend(action pool.Extend) {
	if _, waits := c.extensions.Swap(action.Name, action); waits {
		return
	}
	c.tasks.addLater(podname.ID(action.Name), func(ctx context.Context) {
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

// patchExpiry writes a pod's expiry, in the API server's time, to the pod's annotation. The patch contains the UID, so
// that it fails if another pod now has the same name.
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

var errNotOwner = errors.New("another replica owns the function, or this replica has not listed the Leases recently")

// Delete deletes a pod and its Service in the background. The deletion fails if another replica now owns the
// function.
func (c *Cluster) Delete(action pool.Delete) {
	id := podname.PodID(action.Function.Reference, action.Function.Digest, action.Slot)
	uid := types.UID(action.UID)
	c.tasks.add(podname.ID(action.Name), func(ctx context.Context) {
		refuse := func(err error) {
			c.log.WarnContext(ctx, "function pod not deleted", "pod", action.Name, "error", err)
			c.config.Send(pool.DeleteFailed{Name: action.Name, UID: action.UID})
		}
		if !action.Foreign && !c.config.Owns(action.Function.Reference) { // the owner may have changed while the task waited
			refuse(errNotOwner)
			return
		}
		start := time.Now()
		_, repeated := c.deleting.Swap(uid, struct{}{})
		err := c.removePod(ctx, action.Name, uid, action.Version)
		c.metrics.recordAction(ctx, "delete", start, err)
		switch {
		case apierrors.IsNotFound(err):
			c.deleting.Delete(uid)
			c.config.Send(pool.PodGone{Name: action.Name, UID: action.UID})
		case err != nil:
			c.deleting.Delete(uid)
			refuse(err)
			return
		case !repeated:
			c.metrics.podDeleted(ctx, action.Eviction)
		}
		c.removeServiceOf(ctx, id, uid)
	})
}

// startingGrace is the maximum grace period, in seconds, of deleted pods that have not run yet. The kernel drops the
// stop signal if the container's first process does not handle signals yet. The pod would then live for its full grace
// period, which is longer than any evaluation. The limit is not lower, because another replica may already use the pod.
const startingGrace = 30

// shortGracePeriod returns a grace period of 30 s (startingGrace) for a pod that has not run yet. It returns nil if
// the pod's own grace period applies.
func shortGracePeriod(pod *corev1.Pod, uid types.UID) *int64 {
	if pod == nil || pod.UID != uid || slices.ContainsFunc(pod.Status.ContainerStatuses, hasRun) {
		return nil
	}
	if own := pod.Spec.TerminationGracePeriodSeconds; own == nil || *own <= startingGrace {
		return nil
	}
	return new(int64(startingGrace))
}

// hasRun reports whether a container has started. The status is from the informer, and may be slightly outdated.
func hasRun(c corev1.ContainerStatus) bool {
	return c.State.Waiting == nil || c.LastTerminationState.Terminated != nil
}

// removePod deletes a pod if its UID and resource version match. An empty uid or version matches any pod.
func (c *Cluster) removePod(ctx context.Context, name string, uid types.UID, version string) error {
	options := metav1.DeleteOptions{
		Preconditions:      &metav1.Preconditions{},
		GracePeriodSeconds: shortGracePeriod(c.podByName(name), uid),
	}
	if uid != "" {
		options.Preconditions.UID = &uid
	}
	if version != "" {
		options.Preconditions.ResourceVersion = &version
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
