// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// parallel is how many tasks run at a time.
const parallel = 64

// task is something to be done about a pod or its Service.
type task func(ctx context.Context, send func(pool.Event))

// tasks runs tasks: those for the pods with one id in order, those of different ids at the
// same time. A pod and its successor with another name have the same id and so
// the same Service, which must not be deleted after the successor found it there.
//
// What waits is bounded by the pods that there may be. Each has one creation; one
// deletion at a time, since the pools wait for its outcome; one extension, see
// [Cluster.Extend]; and a task or two of garbage collection per scan.
type tasks struct {
	wake chan struct{} // has capacity 1

	mu      sync.Mutex
	waiting map[string][]task // by id; there is an entry while one of them runs
	ids     []string          // ids with tasks of which none runs
}

func newTasks() *tasks {
	return &tasks{wake: make(chan struct{}, 1), waiting: make(map[string][]task)}
}

// add queues a task, without waiting for it.
func (t *tasks) add(id string, do task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, running := t.waiting[id]
	t.waiting[id] = append(t.waiting[id], do)
	if running {
		return
	}
	t.ids = append(t.ids, id)
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// next returns an id with tasks.
func (t *tasks) next() (id string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ids) == 0 {
		return "", false
	}
	id, t.ids = t.ids[0], t.ids[1:]
	return id, true
}

// take returns the next task of an id; nil if there is none left.
func (t *tasks) take(id string) task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting[id]) == 0 {
		delete(t.waiting, id)
		return nil
	}
	do := t.waiting[id][0]
	t.waiting[id] = t.waiting[id][1:]
	return do
}

// run runs tasks until ctx ends, and returns after the last one did.
func (t *tasks) run(ctx context.Context, send func(pool.Event)) {
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	running.SetLimit(parallel)
	for {
		for id, ok := t.next(); ok; id, ok = t.next() {
			running.Go(func() error {
				for do := t.take(id); do != nil; do = t.take(id) {
					do(ctx, send)
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
