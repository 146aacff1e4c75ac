// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// parallel is the maximum number of concurrent tasks. A task is an operation on a pod or its Service.
	parallel = 64
	// parallelLater is the maximum number of concurrent background tasks. It is low, because background tasks share
	// the client's request rate with tasks for which callers wait.
	parallelLater = 8
)

// task is an operation on a pod or its Service in the Kubernetes API. It passes the resulting events to send.
type task func(ctx context.Context, send func(pool.Event))

// tasks runs the tasks with the same id in order, and all other tasks concurrently. An id is the name of a pod's
// Service. A pod and its successor share the Service, so the order matters: the Service must not be deleted for the
// predecessor after the successor's creation has found it.
//
// Creations and deletions of pods are urgent, because callers wait for them. Extensions of expiries and garbage
// collection are background tasks.
//
// The queue is bounded by the number of pods. For each pod, at most one creation, one deletion, one extension (see
// [Cluster.Extend]) and, per scan, two tasks of garbage collection are queued.
type tasks struct {
	wake chan struct{} // has capacity 1

	mu    sync.Mutex
	lines map[string]*line // by id; an id is missing if none of its tasks waits or runs
	// urgent and later contain the ids with waiting urgent tasks and background tasks. An id may be in both.
	urgent, later         []string
	running, runningLater int
}

// line contains the waiting tasks of an id, in order.
type line struct {
	tasks   []task
	running bool
	urgent  bool
}

func newTasks() *tasks {
	return &tasks{wake: make(chan struct{}, 1), lines: make(map[string]*line)}
}

// add queues an urgent task.
func (t *tasks) add(id string, do task) { t.addTask(id, do, true) }

// addLater queues a background task.
func (t *tasks) addLater(id string, do task) { t.addTask(id, do, false) }

func (t *tasks) addTask(id string, do task, urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[id]
	isNew := l == nil
	if isNew {
		l = &line{}
		t.lines[id] = l
	}
	l.tasks = append(l.tasks, do)
	switch {
	case l.running: // the goroutine of the line runs this task next
	case urgent && !l.urgent:
		l.urgent = true
		t.urgent = append(t.urgent, id)
	case isNew:
		t.later = append(t.later, id)
	}
	t.signalWork()
}

func (t *tasks) signalWork() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// nextID removes and returns the next id whose tasks may run. later is true if the id comes from the background
// tasks. ok is false if no id waits, or if the maximum number of tasks is running.
func (t *tasks) nextID() (id string, later, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == parallel {
		return "", false, false
	}
	if id, ok = t.popID(&t.urgent); !ok && t.runningLater < parallelLater {
		id, ok = t.popID(&t.later)
		later = ok
	}
	if !ok {
		return "", false, false
	}
	t.lines[id].running = true
	t.running++
	if later {
		t.runningLater++
	}
	return id, later, true
}

// popID removes and returns the first id in ids whose tasks are not running already.
func (t *tasks) popID(ids *[]string) (id string, ok bool) {
	for len(*ids) > 0 {
		id, *ids = (*ids)[0], (*ids)[1:]
		if l := t.lines[id]; l != nil && !l.running {
			return id, true
		}
	}
	return "", false
}

// takeTask removes and returns an id's next task. If no task is left, it returns nil and the id counts as idle.
func (t *tasks) takeTask(id string, later bool) task {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[id]
	if len(l.tasks) == 0 {
		delete(t.lines, id)
		t.running--
		if later {
			t.runningLater--
		}
		t.signalWork()
		return nil
	}
	do := l.tasks[0]
	l.tasks = l.tasks[1:]
	return do
}

// run runs tasks until ctx is cancelled, and returns after all running tasks have ended.
func (t *tasks) run(ctx context.Context, send func(pool.Event)) {
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // tasks return no errors
	for {
		for id, later, ok := t.nextID(); ok; id, later, ok = t.nextID() {
			running.Go(func() error {
				for do := t.takeTask(id, later); do != nil; do = t.takeTask(id, later) {
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
