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

// FunctionConfigsConfig configures FunctionConfigs.
type FunctionConfigsConfig struct {
	// DefaultImagePrefix is the registry and path that is added to image names without a registry.
	DefaultImagePrefix string
	// Secrets are the names of Secrets that a FunctionConfig must not pass to function pods.
	Secrets []string
	// Changed is called after each change with the combined settings of all FunctionConfig objects. It must apply the
	// settings before it returns, because the objects' statuses are written afterwards.
	Changed func(*functionconfig.Set)
	Log     *slog.Logger
}

// FunctionConfigs watches Porch's FunctionConfig objects, applies their settings and writes their statuses. Use
// [NewFunctionConfigs], and pass the result to [NewPorchResources], which runs it.
type FunctionConfigs struct {
	config FunctionConfigsConfig
	log    *slog.Logger
	// dirty signals that all objects must be applied again. Its capacity is 1: senders never block or lose a signal.
	dirty chan struct{}
	// statuses is the queue of the names of FunctionConfig objects with a status that may be out of date.
	statuses workqueue.TypedRateLimitingInterface[string]
	compiled atomic.Pointer[functionConfigSnapshot]

	mu sync.Mutex
	// binaries maps names of FunctionConfig objects to the errors of their local binaries, as gateways report them. It
	// is nil if no gateway that runs local binaries reports to this process.
	binaries map[string]string
	// written maps the UID of an object to the last status that this process wrote. If another client overwrites this
	// status, it is not written again.
	written map[string]configStatus
	// denied is the time of the next write of a status after the API server denied a write. Otherwise it is zero.
	denied time.Time
}

// functionConfigSnapshot is immutable. It contains FunctionConfig objects and the settings compiled from them.
type functionConfigSnapshot struct {
	set     *functionconfig.Set
	configs map[string]*functionconfig.Config // by name
	since   map[string]time.Time              // time when an object's generation first appeared, by name
}

// addConfig adds a FunctionConfig to the snapshot, with the time when its generation first appeared: the time in
// the previous snapshot (before) if that contains the same generation, otherwise now.
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

// NewFunctionConfigs returns FunctionConfigs without objects. It sends no requests.
func NewFunctionConfigs(config FunctionConfigsConfig) *FunctionConfigs {
	return &FunctionConfigs{
		config: config, log: config.Log, dirty: make(chan struct{}, 1), written: map[string]configStatus{},
	}
}

// ReportBinaries stores the errors of local binaries by name of the FunctionConfig object, to show them in the
// objects' statuses. problems is nil if no gateway that runs local binaries reports to this process.
func (f *FunctionConfigs) ReportBinaries(problems map[string]string) {
	f.mu.Lock()
	same := maps.Equal(f.binaries, problems) && (f.binaries == nil) == (problems == nil)
	f.binaries = problems
	f.mu.Unlock()
	if !same {
		f.markDirty()
	}
}

// markDirty signals followInformer to apply all objects again.
func (f *FunctionConfigs) markDirty() {
	select {
	case f.dirty <- struct{}{}:
	default: // the signal is pending
	}
}

// absent implements follower. The FunctionConfig resource is not installed, so an empty set of objects is applied.
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

// followInformer applies the informer's FunctionConfig objects at the start and after each change, and writes their
// statuses, until ctx is cancelled.
func (f *FunctionConfigs) followInformer(
	ctx context.Context, c *PorchResources, informer cache.SharedIndexInformer,
) error {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](minStatusRetry, maxStatusRetry)
	f.statuses = workqueue.NewTypedRateLimitingQueue(backoff)
	defer f.statuses.ShutDown() // the queue starts a goroutine
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
		case <-f.dirty: // the list below contains all changes so far; later changes signal again
		default:
		}
		f.applyObjects(ctx, toTyped[*unstructured.Unstructured](informer.GetStore().List()))
		c.markSynced(functionConfigs)
		if !f.awaitChange(ctx) {
			return nil
		}
	}
}

// registerHandlers registers the informer's event handlers. A change of an object's settings causes all objects to
// be applied again. A change of only its status causes the status to be checked again.
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
		f.statuses.ShutDown() // before Wait, because the writers wait for the queue
		workers.Wait()
	}
}

// gather is the delay between a change and its application, so that changes within this time are applied together.
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

// sameMeaning reports whether two versions of a FunctionConfig object contain the same settings. These versions
// differ only in metadata or status.
func sameMeaning(a, b *unstructured.Unstructured) bool {
	const settings = functionconfig.SettingsAnnotation
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		a.GetAnnotations()[settings] == b.GetAnnotations()[settings] &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil)
}

// applyObjects compiles the FunctionConfig objects to settings, passes the settings to config.Changed, and queues
// updates of the objects' statuses.
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

// logChange logs a summary, and the problems of FunctionConfig objects that the previous snapshot (before) lacks.
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
