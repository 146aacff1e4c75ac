// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
)

// FunctionConfigsConfig configures the watcher of Porch's FunctionConfig objects.
type FunctionConfigsConfig struct {
	// DefaultImagePrefix is the registry and path that is added to image names without a registry.
	DefaultImagePrefix string
	// Secrets contains the names of Secrets that a FunctionConfig must not pass to function pods.
	Secrets []string
	// Changed is called with the combined settings of all FunctionConfig objects after each change. It must apply the
	// settings before it returns, because the statuses that report them are written next.
	Changed func(*functionconfig.Set)
	Log     *slog.Logger
}

// FunctionConfigs applies the settings of Porch's FunctionConfig objects and writes the objects' statuses. Pass the
// result of [NewFunctionConfigs] to [NewPorchResources] to run it.
type FunctionConfigs struct {
	config FunctionConfigsConfig
	log    *slog.Logger
	// dirty signals that all objects must be applied again. Its buffer holds one pending signal. Senders drop further
	// signals, so that they never block.
	dirty chan struct{}
	// statuses queues the names of FunctionConfig objects with a possibly outdated status.
	statuses workqueue.TypedRateLimitingInterface[string]
	compiled atomic.Pointer[functionConfigSnapshot]

	mu sync.Mutex
	// binaries contains gateways' error reports about local binaries, by name of the FunctionConfig. It is nil while this
	// process receives reports from no gateway with local binaries.
	binaries map[string]string
	// written contains the last status that this process wrote to each object, by UID. If another client overwrites a
	// status, this process does not write the same status again.
	written map[string]configStatus
	// denied is the time until which no statuses are written, because the API server denied a write.
	denied time.Time
}

// functionConfigSnapshot is an immutable snapshot of all FunctionConfig objects and their combined settings.
type functionConfigSnapshot struct {
	set     *functionconfig.Set
	configs map[string]*functionconfig.Config // by name
	since   map[string]time.Time              // time when an object's generation first appeared, by name
}

// addConfig adds a FunctionConfig to the snapshot, with the time when its current generation first appeared. If the
// generation is unchanged, this is the time in the previous snapshot (before). Otherwise, it is the current time.
func (c *functionConfigSnapshot) addConfig(config *functionconfig.Config, before *functionConfigSnapshot) {
	c.configs[config.Name] = config
	c.since[config.Name] = time.Now()
	if before == nil {
		return
	}
	if old := before.configs[config.Name]; old != nil && old.UID == config.UID && old.Generation == config.Generation {
		c.since[config.Name] = before.since[config.Name]
	}
}

// NewFunctionConfigs returns FunctionConfigs that have not read any objects yet.
func NewFunctionConfigs(config FunctionConfigsConfig) *FunctionConfigs {
	return &FunctionConfigs{
		config: config, log: config.Log, dirty: make(chan struct{}, 1), written: map[string]configStatus{},
	}
}

// ReportBinaries writes the gateways' errors about local binaries to the statuses of FunctionConfig objects. The map
// problems contains these errors by the name of the object. It is nil while no gateway has reported to this process.
func (f *FunctionConfigs) ReportBinaries(problems map[string]string) {
	f.mu.Lock()
	same := maps.Equal(f.binaries, problems) && (f.binaries == nil) == (problems == nil)
	f.binaries = problems
	f.mu.Unlock()
	if !same {
		f.markDirty()
	}
}

// markDirty causes all FunctionConfig objects to be applied again.
func (f *FunctionConfigs) markDirty() {
	select {
	case f.dirty <- struct{}{}:
	default: // an earlier signal is still pending
	}
}

// absent implements follower. It removes the settings of all objects, because the resource is not installed.
func (f *FunctionConfigs) absent(ctx context.Context) {
	if now := f.compiled.Load(); now == nil || len(now.configs) > 0 {
		f.applyObjects(ctx, nil)
	}
}

// follow implements follower.
func (f *FunctionConfigs) follow(ctx context.Context, c *PorchResources) error {
	return c.watch(ctx, functionConfigs, "", func(ctx context.Context, informer cache.SharedIndexInformer) error {
		return f.followInformer(ctx, c, informer)
	})
}

// followInformer applies FunctionConfig objects at the start and after each change, and writes their statuses,
// until ctx is cancelled.
func (f *FunctionConfigs) followInformer(
	ctx context.Context, c *PorchResources, informer cache.SharedIndexInformer,
) error {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](minStatusRetry, maxStatusRetry)
	f.statuses = workqueue.NewTypedRateLimitingQueue(backoff)
	defer f.statuses.ShutDown() // stops the queue's goroutine
	handled, err := f.registerHandlers(informer)
	if err != nil {
		return fmt.Errorf("watch FunctionConfigs: %w", err)
	}
	if !cache.WaitFor(ctx, "", handled.HasSyncedChecker()) {
		return nil
	}
	defer f.startWriters(ctx, c, informer)()
	for {
		select {
		case <-f.dirty: // the list below contains all changes that were signalled
		default:
		}
		f.applyObjects(ctx, toTyped[*unstructured.Unstructured](informer.GetStore().List()))
		c.markSynced(functionConfigs)
		if !f.awaitChange(ctx) {
			return nil
		}
	}
}

// registerHandlers subscribes to changes of FunctionConfig objects. After a change of an object's settings, all
// objects are applied again. If only the status changed, the status is checked again.
func (f *FunctionConfigs) registerHandlers(
	informer cache.SharedIndexInformer,
) (cache.ResourceEventHandlerRegistration, error) {
	return informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.markDirty() },
		UpdateFunc: func(old, object any) {
			before, now := old.(*unstructured.Unstructured), object.(*unstructured.Unstructured)
			if sameMeaning(before, now) {
				f.statuses.Add(now.GetName())
			} else {
				f.markDirty()
			}
		},
		DeleteFunc: func(any) { f.markDirty() },
	})
}

// startWriters starts the goroutines that write statuses, and returns a function that stops them.
func (f *FunctionConfigs) startWriters(
	ctx context.Context, c *PorchResources, informer cache.SharedIndexInformer,
) (stop func()) {
	objects := c.config.Dynamic.Resource(functionConfigs).Namespace(c.config.Namespace)
	writer := statusWriter{f, objects, informer.GetStore(), c.config.Namespace}
	var workers sync.WaitGroup
	for range statusWriters {
		workers.Go(func() { writer.run(ctx) })
	}
	return func() {
		f.statuses.ShutDown() // ends the writers, which wait for the queue
		workers.Wait()
	}
}

// gather is the delay before a change is applied, so that several changes in quick succession are applied together.
const gather = 20 * time.Millisecond

// awaitChange waits for a change of the objects, then 20 ms for further changes. It returns false if ctx is done.
func (f *FunctionConfigs) awaitChange(ctx context.Context) bool {
	select {
	case <-f.dirty:
	case <-ctx.Done():
		return false
	}
	return retry.Sleep(ctx, gather)
}

// sameMeaning reports whether two versions of a FunctionConfig contain the same settings. They may differ in
// metadata or status.
func sameMeaning(a, b *unstructured.Unstructured) bool {
	const settings = functionconfig.SettingsAnnotation
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		a.GetAnnotations()[settings] == b.GetAnnotations()[settings] &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil)
}

// applyObjects combines all FunctionConfig objects, puts their settings into effect, and queues updates of the
// objects' statuses.
func (f *FunctionConfigs) applyObjects(ctx context.Context, objects []*unstructured.Unstructured) {
	before := f.compiled.Load()
	next := &functionConfigSnapshot{configs: map[string]*functionconfig.Config{}, since: map[string]time.Time{}}
	configs := make([]*functionconfig.Config, 0, len(objects))
	for _, u := range objects {
		if u.GetDeletionTimestamp() != nil {
			continue // deleted objects no longer apply
		}
		c := functionconfig.Decode(u, f.config.DefaultImagePrefix, f.config.Secrets...)
		configs = append(configs, c)
		next.addConfig(c, before)
	}
	next.set = functionconfig.Compile(configs, f.config.DefaultImagePrefix)
	f.config.Changed(next.set)
	f.compiled.Store(next)
	f.logChange(ctx, before, next)
	f.forgetDeleted(next)
	for _, u := range objects {
		f.statuses.AddAfter(u.GetName(), statusDelay)
	}
}

// logChange logs a summary of the FunctionConfig objects, and each object's new problems.
func (f *FunctionConfigs) logChange(ctx context.Context, before, now *functionConfigSnapshot) {
	problems := 0
	for name := range now.configs {
		found := now.set.Problems(name)
		if len(found) == 0 {
			continue
		}
		problems++
		if before == nil || !slices.Equal(before.set.Problems(name), found) {
			f.log.WarnContext(ctx, "FunctionConfig not applied as a whole", "config", name, "problems", found)
		}
	}
	if len(now.configs) > 0 || (before != nil && len(before.configs) > 0) {
		f.log.InfoContext(ctx, "FunctionConfigs applied", "configs", len(now.configs), "with_problems", problems)
	}
}
