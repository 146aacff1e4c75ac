package kube

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// parallel is how many tasks run at a time.
const parallel = 64

// task is something to be done about one pod.
type task func(ctx context.Context, tell func(pool.Event))

// tasks runs what is to be done: for one pod in order, for different ones at the same
// time. What waits is bounded by the pods that there may be, each of which has a
// creation, an extension and a deletion at most.
type tasks struct {
	wake chan struct{} // has room for one

	mu      sync.Mutex
	waiting map[string][]task // by pod; there is an entry while one of them runs
	names   []string          // pods with tasks of which none runs

	synced   []cache.InformerSynced
	onSynced func()
}

func newTasks() *tasks {
	return &tasks{wake: make(chan struct{}, 1), waiting: make(map[string][]task)}
}

// after has something done once everything that existed has been told.
func (t *tasks) after(synced []cache.InformerSynced, do func()) { t.synced, t.onSynced = synced, do }

// add has a task done, without waiting for it.
func (t *tasks) add(pod string, do task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, running := t.waiting[pod]
	t.waiting[pod] = append(t.waiting[pod], do)
	if running {
		return
	}
	t.names = append(t.names, pod)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// next returns a pod with tasks.
func (t *tasks) next() (pod string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.names) == 0 {
		return "", false
	}
	pod, t.names = t.names[0], t.names[1:]
	return pod, true
}

// take returns the next task of a pod; nil if there is none left.
func (t *tasks) take(pod string) task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting[pod]) == 0 {
		delete(t.waiting, pod)
		return nil
	}
	do := t.waiting[pod][0]
	t.waiting[pod] = t.waiting[pod][1:]
	return do
}

// run runs tasks until ctx ends, and returns after the last one did.
func (t *tasks) run(ctx context.Context, tell func(pool.Event)) {
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	running.SetLimit(parallel + 1)
	running.Go(func() error {
		if cache.WaitForCacheSync(ctx.Done(), t.synced...) {
			t.onSynced()
		}
		return nil
	})
	for {
		for pod, ok := t.next(); ok; pod, ok = t.next() {
			running.Go(func() error {
				for do := t.take(pod); do != nil; do = t.take(pod) {
					do(ctx, tell)
				}
				return nil
			})
		}
		select {
		case <-t.wake:
		case <-ctx.Done():
			return
		}
	}
}
