// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
)

// source is the part of a Kubernetes client that an informer requires: it lists and watches objects of a kind.
type source[T runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (T, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newInformer returns an informer for the objects of a source. selected sets the selectors of list and watch
// requests.
//
// If the API server is unreachable, client-go waits for up to a minute before a retry. So the informer's list and
// watch functions retry at least once per second. The outage o logs the failures.
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

// runInformer runs an informer until ctx is cancelled, without client-go's log, because its outage logs failures.
func runInformer(ctx context.Context, informer cache.SharedIndexInformer) {
	informer.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// untilAnswered repeats a request (ask) until the API server responds or ctx is cancelled. An error response, such
// as a missing right, counts as a response, unless the API server is too busy.
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
		if !backoff.Wait(ctx, err) {
			return answer, err
		}
	}
}

// isAway reports whether the API server is unreachable or too busy to respond. All other errors are passed to
// client-go, which handles them: for instance, it requests a list in pages if the API server cannot stream the list.
func isAway(err error) bool {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
