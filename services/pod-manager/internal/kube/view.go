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
)

// source lists and watches objects of one kind.
type source[T runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (T, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// newView returns an informer about the objects of a source that selected chooses.
//
// Client-go would wait for up to a minute before it asks an API server again that was
// away. This view asks each second, and says once what is the matter.
func newView[T runtime.Object](client kubernetes.Interface, object runtime.Object, from source[T], selected func(*metav1.ListOptions), o *outage) (cache.SharedIndexInformer, error) {
	both := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			selected(&options)
			objects, err := insist(ctx, o, func() (T, error) { return from.List(ctx, options) })
			o.listed(err == nil)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			selected(&options)
			return insist(ctx, o, func() (watch.Interface, error) { return from.Watch(ctx, options) })
		},
	}
	view := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(both, client), object, 0, cache.Indexers{})
	err := errors.Join(view.SetTransform(slim), view.SetWatchErrorHandlerWithContext(o.refused))
	if err != nil {
		return nil, fmt.Errorf("set up the view of %s: %w", o.what, err)
	}
	return view, nil
}

// look runs a view until ctx ends. What client-go would log about it, its outage says.
func look(ctx context.Context, view cache.SharedIndexInformer) {
	view.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// slim drops what nobody reads, which is a good part of an object.
func slim(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object, nil
}

// insist asks until the API server answers. Its answer may be a refusal.
func insist[T any](ctx context.Context, o *outage, ask func() (T, error)) (T, error) {
	pauses := newPauses()
	for {
		answer, err := ask()
		if err == nil {
			o.over(ctx)
		}
		if err == nil || ctx.Err() != nil || !away(err) {
			return answer, err
		}
		o.failed(ctx, err)
		if !sleep(ctx, pauses.after(err)) {
			return answer, err
		}
	}
}

// away says whether an API server is away or too busy to answer. What else is wrong
// with lists and watches client-go knows to deal with.
func away(err error) bool {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err)
}
