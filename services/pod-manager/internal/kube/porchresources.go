// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// Resources by which Porch's main branch configures its function runner.
var (
	porchGroup       = schema.GroupVersion{Group: "config.porch.kpt.dev", Version: "v1alpha1"}
	functionConfigs  = porchGroup.WithResource("functionconfigs")
	serviceTemplates = porchGroup.WithResource("servicetemplates")
	podTemplates     = schema.GroupVersionResource{Version: "v1", Resource: "podtemplates"}
)

// PorchResourcesConfig configures the watcher of Porch's resources.
type PorchResourcesConfig struct {
	// Client only detects features of the API server. Dynamic lists, watches and patches objects.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Discover lists the resources of a group and version. It returns a NotFound error if the group is not installed.
	Discover func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	// Namespace is the namespace of Porch's objects and of the function pods.
	Namespace string
	Telemetry *telemetry.Telemetry
}

// follower applies the objects of a single resource of Porch, such as FunctionConfigs.
type follower interface {
	// follow applies the objects and their changes. It returns nil when ctx is cancelled, or an error when the API
	// server no longer serves the resource.
	follow(ctx context.Context, c *PorchResources) error
	// absent is called while the API server does not serve the resource. It removes the effect of earlier objects.
	absent(ctx context.Context)
}

// PorchResources applies Porch's resources that configure function runners, such as FunctionConfigs. While these
// resources are not installed, it only polls the API server's discovery document, which requires no rights.
type PorchResources struct {
	config      PorchResourcesConfig
	log         *slog.Logger
	metrics     *metrics
	followers   map[schema.GroupVersionResource]follower
	synced      chan struct{}
	closeSynced func() // closes synced once

	mu sync.Mutex
	// unsynced contains the resources whose existing objects are not applied yet. It is nil until the list of installed
	// resources is known.
	unsynced map[schema.GroupVersionResource]bool
}

// NewPorchResources returns PorchResources for FunctionConfigs and the templates of Porch's main branch. It passes each
// new template of function pods to the callback, and then logs that the template is applied.
func NewPorchResources(config PorchResourcesConfig, configs *FunctionConfigs, templates *Templates,
	use func(podspec.Template),
) (*PorchResources, error) {
	metrics := newMetrics(config.Telemetry.Meters)
	followers := map[schema.GroupVersionResource]follower{functionConfigs: configs}
	for _, b := range templates.baseTemplates(use) {
		followers[b.resource] = b
	}
	synced := make(chan struct{})
	return &PorchResources{
		config: config, log: config.Telemetry.Log, metrics: metrics, followers: followers,
		synced: synced, closeSynced: sync.OnceFunc(func() { close(synced) }),
	}, nil
}

const (
	// minDiscover and maxDiscover limit the interval at which the list of installed resources is requested.
	minDiscover = 2 * time.Second
	maxDiscover = time.Minute
	// syncTimeout is the maximum time that new pods wait for the settings in Porch's existing objects.
	syncTimeout = 5 * time.Second
)

// Synced returns a channel that closes once Porch's existing objects are applied. New pods wait for it, because they
// may need the settings in these objects. It also closes if the resources are not installed, or after 5 s
// (syncTimeout).
func (c *PorchResources) Synced() <-chan struct{} { return c.synced }

// markSynced records that the existing objects of a resource are applied.
func (c *PorchResources) markSynced(resource schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unsynced, resource)
	if len(c.unsynced) == 0 {
		c.closeSynced()
	}
}

// Run applies the resources and their changes until ctx is cancelled.
func (c *PorchResources) Run(ctx context.Context) error {
	timer := time.AfterFunc(syncTimeout, c.closeSynced)
	defer timer.Stop()
	backoff := retry.Backoff{First: minDiscover, Max: maxDiscover, Jitter: 0.2}
	for {
		served := c.discoverServed(ctx)
		if served[functionConfigs] {
			backoff.Reset()
			c.followAll(ctx, served)
		} else {
			for _, f := range c.followers {
				f.absent(ctx)
			}
			c.closeSynced()
		}
		if !backoff.Wait(ctx) {
			return nil
		}
	}
}

// discoverServed returns the resources that the API server serves, or none after an error. It logs errors only at debug
// level, because the informers of pods and Services log the same outage.
func (c *PorchResources) discoverServed(ctx context.Context) map[schema.GroupVersionResource]bool {
	list, err := c.config.Discover(ctx, porchGroup.String())
	if err != nil {
		if ctx.Err() == nil && !apierrors.IsNotFound(err) {
			c.log.DebugContext(ctx, "Porch's resources not looked up", "error", err)
		}
		return nil
	}
	served := map[schema.GroupVersionResource]bool{podTemplates: true}
	for _, resource := range list.APIResources {
		served[porchGroup.WithResource(resource.Name)] = true
	}
	return served
}

// followAll applies the objects of the served resources. It returns once ctx is cancelled or a resource is uninstalled.
func (c *PorchResources) followAll(ctx context.Context, served map[schema.GroupVersionResource]bool) {
	c.log.InfoContext(ctx, "FunctionConfigs are installed", "namespace", c.config.Namespace)
	c.mu.Lock()
	c.unsynced = map[schema.GroupVersionResource]bool{}
	for resource := range c.followers {
		if served[resource] {
			c.unsynced[resource] = true
		}
	}
	c.mu.Unlock()
	all, until := errgroup.WithContext(ctx)
	for resource, f := range c.followers {
		if served[resource] {
			all.Go(func() error { return f.follow(until, c) })
		}
	}
	if err := all.Wait(); err != nil && ctx.Err() == nil {
		c.log.InfoContext(ctx, "FunctionConfigs are no longer installed", "error", err)
	}
}

const (
	// minDenied and maxDenied limit the delay between attempts to watch a resource while the right to watch is missing.
	minDenied = time.Minute
	maxDenied = 10 * time.Minute
)

// watch runs an informer for the objects of a resource, and passes the informer to the callback. If Kubernetes forbids
// the watch, it retries later, and settings from earlier objects stay effective. It returns nil when ctx is cancelled,
// or an error if the resource does not exist.
func (c *PorchResources) watch(ctx context.Context, resource schema.GroupVersionResource, name string,
	use func(context.Context, cache.SharedIndexInformer) error,
) error {
	backoff := retry.Backoff{First: minDenied, Max: maxDenied}
	for logged := false; ; {
		err := c.watchOnce(ctx, resource, name, use)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the watch ends with its context
		}
		switch {
		case !apierrors.IsForbidden(err):
			return err
		case !logged:
			logged = true
			c.log.WarnContext(ctx, "not permitted to watch objects that configure functions",
				"resource", resource.Resource, "error", err,
				"hint", "they have no effect; apply the Role of deploy/components/porch-main")
		}
		c.markSynced(resource)
		if !backoff.Wait(ctx) {
			return nil
		}
	}
}

// watchOnce runs an informer while the callback use runs. It returns the error because of which the watch ended.
func (c *PorchResources) watchOnce(ctx context.Context, resource schema.GroupVersionResource, name string,
	use func(context.Context, cache.SharedIndexInformer) error,
) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	from := guardedSource{c.config.Dynamic.Resource(resource).Namespace(c.config.Namespace), end}
	selected := func(o *metav1.ListOptions) {
		if name != "" {
			o.FieldSelector = "metadata.name=" + name
		}
	}
	o := &outage{resource: resource.Resource, log: c.log, metrics: c.metrics}
	informer, err := newInformer(c.config.Client, &unstructured.Unstructured{}, from, selected, o)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() {
		defer end(nil)
		runInformer(ctx, informer)
	})
	err = use(ctx, informer)
	end(err)
	running.Wait()
	return context.Cause(ctx)
}

// guardedSource ends a watch if the resource is missing or access is forbidden, so that the caller can react. Client-go
// alone would only retry every half minute.
type guardedSource struct {
	objects dynamic.ResourceInterface
	end     context.CancelCauseFunc
}

// List implements source.
func (g guardedSource) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := g.objects.List(ctx, options)
	return list, g.stopUnlessTransient(ctx, err)
}

// Watch implements source.
func (g guardedSource) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := g.objects.Watch(ctx, options)
	return w, g.stopUnlessTransient(ctx, err)
}

// stopUnlessTransient returns a transient err, so that client-go retries the request. If err shows that the resource is
// missing or access is forbidden, it ends the watch.
func (g guardedSource) stopUnlessTransient(ctx context.Context, err error) error {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return err
	}
	g.end(fmt.Errorf("watch objects that configure functions: %w", err))
	<-ctx.Done()
	return ctx.Err()
}
