// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

const (
	// parallel is the maximum number of concurrent tasks.
	parallel = 64
	// parallelLater is the maximum number of concurrent background tasks. They share the request rate with tasks that
	// callers wait for.
	parallelLater = 8
)

// task is an operation on a pod or its Service.
type task func(ctx context.Context, send func(pool.Event))

// tasks runs the tasks of an id in order, and the tasks of different ids concurrently. A pod and its successor share
// an id, and so a Service, which must not be deleted after the successor found it.
//
// Creations and deletions are urgent: callers wait for them. Extensions of expiries and garbage collection are
// background tasks.
//
// The queue is bounded by the maximum number of pods: each pod causes one creation, one deletion at a time (the pools
// wait for its result), one extension (see [Cluster.Extend]), and a task or two of garbage collection per scan.
type tasks struct {
	wake chan struct{} // has capacity 1

	mu    sync.Mutex
	lines map[string]*line // by id; there is one while tasks wait or run
	// urgent and later contain ids with tasks, none of which runs. An id may be in both.
	urgent, later         []string
	running, runningLater int
}

// line contains the tasks for the pods with one id.
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
	case l.running: // the running line continues with this task
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

// nextID returns the next id whose tasks may run, and reports whether these are background tasks.
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

// popID removes the first id whose tasks are not running.
func (t *tasks) popID(ids *[]string) (id string, ok bool) {
	for len(*ids) > 0 {
		id, *ids = (*ids)[0], (*ids)[1:]
		if l := t.lines[id]; l != nil && !l.running {
			return id, true
		}
	}
	return "", false
}

// takeTask returns the next task of an id, or nil if no task is left.
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

// run runs tasks until ctx is cancelled, and returns after the last task.
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
