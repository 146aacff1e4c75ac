// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
)

// source lists and watches the objects of a kind for an informer.
type source[T runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (T, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newInformer returns an informer for the objects that the source from lists and watches. The function selected adds
// label or field selectors to each request.
//
// If the API server is unreachable, client-go alone would wait for up to a minute before a retry. This informer retries
// at least once per second. It records failures in the outage o, which logs them.
func newInformer[T runtime.Object](
	client kubernetes.Interface, object runtime.Object, from source[T], selected func(*metav1.ListOptions), o *outage,
) (cache.SharedIndexInformer, error) {
	both := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			selected(&options)
			objects, err := untilAnswered(ctx, o, func() (T, error) { return from.List(ctx, options) })
			o.recordList(err == nil)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			selected(&options)
			return untilAnswered(ctx, o, func() (watch.Interface, error) { return from.Watch(ctx, options) })
		},
	}
	listWatch := cache.ToListWatcherWithWatchListSemantics(both, client)
	informer := cache.NewSharedIndexInformer(listWatch, object, 0, cache.Indexers{})
	err := errors.Join(informer.SetTransform(slimObject), informer.SetWatchErrorHandlerWithContext(o.watchEnded))
	if err != nil {
		return nil, fmt.Errorf("set up the informer of %s: %w", o.resource, err)
	}
	return informer, nil
}

// runInformer runs an informer until ctx is cancelled. It discards client-go's log: the outage tracker logs failures.
func runInformer(ctx context.Context, informer cache.SharedIndexInformer) {
	informer.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// untilAnswered retries a request until the API server responds or ctx is cancelled. An error response, such as a
// refusal, counts as a response. If the API server responds that it is too busy, untilAnswered continues to retry.
func untilAnswered[T any](ctx context.Context, o *outage, ask func() (T, error)) (T, error) {
	backoff := kubeclient.NewBackoff()
	for {
		answer, err := ask()
		if err == nil {
			o.recordRecovery(ctx)
		}
		if err == nil || ctx.Err() != nil || !isAway(err) {
			return answer, err
		}
		o.recordFailure(ctx, err)
		if !backoff.Wait(ctx) {
			return answer, err
		}
	}
}

// followObject watches an informer that contains at most one object. It calls apply for each new version of the object,
// and calls absent if the object does not exist or was deleted. It returns once the initial state is applied.
func followObject[T metav1.Object](
	ctx context.Context, informer cache.SharedIndexInformer, apply func(T), absent func(),
) error {
	version := "" // version of the last applied object
	take := func(object any) {
		if o := object.(T); o.GetResourceVersion() != version {
			version = o.GetResourceVersion()
			apply(o)
		}
	}
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    take,
		UpdateFunc: func(_, object any) { take(object) },
		DeleteFunc: func(any) { version = ""; absent() },
	})
	if err != nil {
		return fmt.Errorf("watch an object: %w", err)
	}
	if cache.WaitFor(ctx, "", handled.HasSyncedChecker()) && len(informer.GetStore().ListKeys()) == 0 {
		absent()
	}
	return nil
}

// isAway reports whether the API server is unreachable or too busy to respond. Client-go handles all other errors
// itself. For instance, if the API server cannot stream a list, client-go requests the list in pages.
func isAway(err error) bool {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}

// outage tracks the failed requests of an informer to the API server. It logs the first failure, a reminder every 5
// minutes (reportInterval), and the recovery.
type outage struct {
	resource string // resource that the informer lists
	log      *slog.Logger
	metrics  *metrics

	mu       sync.Mutex
	since    time.Time // start of the failures, or zero
	cause    error     // last failure, or nil while the informer is up to date
	reported time.Time
	listable bool // true if the last list request succeeded
	relisted bool // true if a missing right to watch was logged
}

// reportInterval is the interval at which an outage logs a reminder while requests continue to fail.
const reportInterval = 5 * time.Minute

// recordFailure marks the informer as out of date, because a request failed.
func (o *outage) recordFailure(ctx context.Context, err error) {
	o.metrics.watchFailed(ctx, o.resource)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.cause = err
	if o.since.IsZero() {
		o.since = now
		o.reported = time.Time{}
	}
	if now.Sub(o.reported) < reportInterval {
		return
	}
	o.reported = now
	o.log.WarnContext(ctx, "watch interrupted; existing pods keep serving",
		"resource", o.resource, "since", o.since, "error", err)
}

// recordRecovery marks the informer as up to date again, because a request succeeded.
func (o *outage) recordRecovery(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	o.log.InfoContext(ctx, "watch restored", "resource", o.resource, "seconds", time.Since(o.since))
	o.since, o.cause = time.Time{}, nil
}

// recordList stores whether the last list request succeeded. If lists succeed but watches are forbidden, the informer
// polls: it repeats list requests instead of watching.
func (o *outage) recordList(ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listable = ok
}

// watchEnded records the error that ended a list or watch request. It ignores the normal end of a watch by the API
// server. In both cases, client-go repeats the request within half a minute.
func (o *outage) watchEnded(ctx context.Context, _ *cache.Reflector, err error) {
	switch {
	case ctx.Err() != nil:
		// The program is stopping.
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		// Do nothing. API servers normally end a watch after many changes or a long time.
	case apierrors.IsForbidden(err) && o.mayList():
		o.logMissingWatch(ctx, err)
	default:
		o.recordFailure(ctx, err)
	}
}

func (o *outage) mayList() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listable
}

// logMissingWatch logs once that the informer polls with list requests, because watch requests are forbidden.
func (o *outage) logMissingWatch(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.relisted {
		return
	}
	o.relisted = true
	o.log.WarnContext(ctx, "watch not permitted; polling", "resource", o.resource, "error", err,
		"hint", "changes are seen after up to half a minute; allow the verb watch in the Role")
}

// obstacle returns an error if the informer is out of date, or nil. The error text contains things, a description of
// the informer's objects, and rights, the directory with the required Role.
func (o *outage) obstacle(things, rights string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.cause == nil:
		return nil
	case apierrors.IsForbidden(o.cause):
		return fault.New(fault.Precondition,
			"the Kubernetes API forbids reading %s, which needs the rights of %s: %w", things, rights, o.cause)
	}
	return fault.New(fault.Unavailable, "cannot read %s from the Kubernetes API: %w", things, o.cause)
}

// slimObject removes unused fields from an object in place, because informers keep all objects in memory.
func slimObject(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil) // a large part of an object
	}
	switch o := object.(type) {
	case *corev1.Pod:
		slimPod(o)
	case *corev1.Service:
		o.Spec = corev1.ServiceSpec{ClusterIP: o.Spec.ClusterIP, Selector: o.Spec.Selector}
	}
	return object, nil
}

// slimPod removes most of a pod's spec to save memory. The spec is not needed to detect outdated pods, because
// annotations contain the versions of the pod's template and settings.
func slimPod(pod *corev1.Pod) {
	pod.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, RestartPolicy: pod.Spec.RestartPolicy,
		TerminationGracePeriodSeconds: pod.Spec.TerminationGracePeriodSeconds,
		InitContainers:                slimContainers(pod.Spec.InitContainers),
		Containers:                    slimContainers(pod.Spec.Containers),
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			s := &statuses[i]
			s.Image, s.ImageID = "", ""
			s.Resources, s.AllocatedResources, s.VolumeMounts = nil, nil, nil
		}
	}
}

func slimContainers(containers []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, 0, len(containers))
	for _, c := range containers {
		slim = append(slim, corev1.Container{
			Name: c.Name, Image: c.Image, Command: c.Command, RestartPolicy: c.RestartPolicy,
		})
	}
	return slim
}
