// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
)

// FunctionConfigsConfig is what following FunctionConfigs takes.
type FunctionConfigsConfig struct {
	// DefaultImagePrefix is where images without a prefix are.
	DefaultImagePrefix string
	// Changed takes what all objects mean, each time that it changes. It is in force when
	// Changed returns.
	Changed func(*functionconfig.Set)
	Log     *slog.Logger
}

// FunctionConfigs follows the objects, and writes their statuses. Use [NewFunctionConfigs], and
// [NewCustom] to run it.
type FunctionConfigs struct {
	config FunctionConfigsConfig
	log    *slog.Logger
	// dirty has a capacity of one: an object has changed.
	dirty chan struct{}
	// statuses are the names of objects whose status may have to be written.
	statuses workqueue.TypedRateLimitingInterface[string]
	compiled atomic.Pointer[compiled]

	mu sync.Mutex
	// binaries are why the exec evaluator in this process cannot use binaries, by object.
	binaries map[string]string
	// written is the last status that this process wrote for an object, by UID.
	written map[string]configStatus
	// denied is until when no status is written for lack of a right; zero if there was none
	// missing.
	denied time.Time
}

// compiled is what objects mean, and of which generation each was. It never changes.
type compiled struct {
	set     *functionconfig.Set
	configs map[string]*functionconfig.Config // by name
}

// NewFunctionConfigs returns what follows FunctionConfigs.
func NewFunctionConfigs(config FunctionConfigsConfig) *FunctionConfigs {
	return &FunctionConfigs{
		config: config, log: config.Log, dirty: make(chan struct{}, 1), written: map[string]configStatus{},
	}
}

// ReportBinaries takes why binaries of objects cannot be used.
func (f *FunctionConfigs) ReportBinaries(problems map[string]string) {
	f.mu.Lock()
	f.binaries = problems
	f.mu.Unlock()
	f.touch()
}

// touch has all objects looked at again.
func (f *FunctionConfigs) touch() {
	select {
	case f.dirty <- struct{}{}:
	default: // that something changed is known
	}
}

// absent implements follower: there are no objects.
func (f *FunctionConfigs) absent(ctx context.Context) {
	if now := f.compiled.Load(); now == nil || len(now.configs) > 0 {
		f.put(ctx, nil)
	}
}

// follow implements follower.
func (f *FunctionConfigs) follow(ctx context.Context, c *Custom) error {
	return c.watch(ctx, functionConfigs, "", func(ctx context.Context, informer cache.SharedIndexInformer) error {
		return f.use(ctx, c, informer)
	})
}

// use follows the objects of an informer until ctx ends.
func (f *FunctionConfigs) use(ctx context.Context, c *Custom, informer cache.SharedIndexInformer) error {
	backoff := workqueue.NewTypedItemExponentialFailureRateLimiter[string](minStatusRetry, maxStatusRetry)
	f.statuses = workqueue.NewTypedRateLimitingQueue(backoff)
	defer f.statuses.ShutDown()
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f.touch() },
		UpdateFunc: func(old, object any) {
			before, now := old.(*unstructured.Unstructured), object.(*unstructured.Unstructured)
			if sameMeaning(before, now) {
				f.statuses.Add(now.GetName())
			} else {
				f.touch()
			}
		},
		DeleteFunc: func(any) { f.touch() },
	})
	if err != nil {
		return fmt.Errorf("watch FunctionConfigs: %w", err)
	}
	if !cache.WaitFor(ctx, "", handled.HasSyncedChecker()) {
		return nil
	}
	objects := c.config.Dynamic.Resource(functionConfigs).Namespace(c.config.Namespace)
	writer := statusWriter{f, objects, informer.GetStore(), c.config.Namespace}
	var workers errgroup.Group
	for range statusWriters {
		workers.Go(func() error { writer.run(ctx); return nil })
	}
	defer func() { _ = workers.Wait() }() // they return no errors
	defer f.statuses.ShutDown()
	for {
		select {
		case <-f.dirty: // what comes later is another change
		default:
		}
		f.put(ctx, list[*unstructured.Unstructured](informer.GetStore().List()))
		c.decide(functionConfigs)
		if !f.awaitChange(ctx) {
			return nil
		}
	}
}

// gather is how long changes are gathered before they are applied together.
const gather = 20 * time.Millisecond

// awaitChange returns when objects have changed, or false when ctx ends.
func (f *FunctionConfigs) awaitChange(ctx context.Context) bool {
	select {
	case <-f.dirty:
	case <-ctx.Done():
		return false
	}
	timer := time.NewTimer(gather)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sameMeaning reports whether two versions of an object differ in their statuses at most.
func sameMeaning(a, b *unstructured.Unstructured) bool {
	const settings = functionconfig.SettingsAnnotation
	return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration() &&
		a.GetAnnotations()[settings] == b.GetAnnotations()[settings] &&
		(a.GetDeletionTimestamp() == nil) == (b.GetDeletionTimestamp() == nil)
}

// put puts objects in force.
func (f *FunctionConfigs) put(ctx context.Context, objects []*unstructured.Unstructured) {
	before := f.compiled.Load()
	next := &compiled{configs: make(map[string]*functionconfig.Config, len(objects))}
	configs := make([]*functionconfig.Config, 0, len(objects))
	for _, u := range objects {
		if u.GetDeletionTimestamp() != nil {
			continue // it does not apply any more
		}
		c := functionconfig.Decode(u, f.config.DefaultImagePrefix)
		configs = append(configs, c)
		next.configs[c.Name] = c
	}
	next.set = functionconfig.Compile(configs, f.config.DefaultImagePrefix)
	f.config.Changed(next.set)
	f.compiled.Store(next)
	f.logChange(ctx, before, next)
	f.forget(next)
	for _, u := range objects {
		f.statuses.AddAfter(u.GetName(), statusDelay)
	}
}

// logChange logs what is wrong now and was not before.
func (f *FunctionConfigs) logChange(ctx context.Context, before, now *compiled) {
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
	if len(now.configs) > 0 || before != nil && len(before.configs) > 0 {
		f.log.InfoContext(ctx, "FunctionConfigs in force", "configs", len(now.configs), "with_problems", problems)
	}
}
