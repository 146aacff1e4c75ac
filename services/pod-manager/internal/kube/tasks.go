// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
)

const (
	// parallel is the maximum number of concurrent tasks for which callers wait, such as the creation of a pod.
	parallel = 64
	// parallelLater is the maximum number of concurrent background tasks. It is low, because background tasks and tasks
	// for which callers wait share the client's rate limit.
	parallelLater = 8
)

// task is an operation on a pod or its Service in the Kubernetes API.
type task func(ctx context.Context)

// tasks runs the operations on each pod and its Service in order, and operations on different pods concurrently. A pod
// and its successor use the same Service. The tasks for both pods have the name of this Service as their id. The order
// prevents a late task for the old pod from deleting the Service that the new pod already uses.
//
// Creations and deletions of pods are urgent, because callers wait for them. Extensions of expiries and garbage
// collection are background tasks. The queue is bounded: each pod has at most one queued creation, deletion and
// extension (see [Cluster.Extend]), and two garbage collection tasks per scan.
type tasks struct {
	// urgent and later are queues of ids that have waiting tasks. An id may be in both queues.
	urgent, later *workqueue.Typed[string]

	mu    sync.Mutex
	lines map[string]*line // by id, only for ids with waiting or running tasks
}

// line contains the waiting tasks of a pod and its Service, in order.
type line struct {
	tasks   []task
	running chan struct{} // capacity 1, full while a worker runs the tasks
}

func newTasks() *tasks {
	return &tasks{
		urgent: workqueue.NewTyped[string](), later: workqueue.NewTyped[string](), lines: make(map[string]*line),
	}
}

// add queues an urgent task. Earlier background tasks with the same id also become urgent, because they must run first.
func (t *tasks) add(id string, do task) { t.addTask(t.urgent, id, do) }

// addLater queues a background task.
func (t *tasks) addLater(id string, do task) { t.addTask(t.later, id, do) }

func (t *tasks) addTask(ids *workqueue.Typed[string], id string, do task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[id]
	if l == nil {
		l = &line{running: make(chan struct{}, 1)}
		t.lines[id] = l
	}
	l.tasks = append(l.tasks, do)
	ids.Add(id)
}

// run runs tasks until ctx is cancelled, and returns after all running tasks have ended.
func (t *tasks) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() { t.work(ctx, t.urgent) })
	}
	for range parallelLater {
		workers.Go(func() { t.work(ctx, t.later) })
	}
	<-ctx.Done()
	t.urgent.ShutDown()
	t.later.ShutDown()
	workers.Wait()
}

// work runs queued tasks until ctx is cancelled. Tasks with the same id run one after another.
func (t *tasks) work(ctx context.Context, ids *workqueue.Typed[string]) {
	for {
		id, shutdown := ids.Get()
		if shutdown || ctx.Err() != nil {
			return
		}
		t.runLine(ctx, id)
		ids.Done(id)
	}
}

// runLine runs the waiting tasks with this id in order. It does nothing if another worker is already running them.
func (t *tasks) runLine(ctx context.Context, id string) {
	t.mu.Lock()
	l := t.lines[id]
	t.mu.Unlock()
	if l == nil {
		return // another worker has run the tasks
	}
	select {
	case l.running <- struct{}{}:
	default:
		return
	}
	defer func() { <-l.running }()
	for do := t.takeTask(id, l); do != nil; do = t.takeTask(id, l) {
		do(ctx)
	}
}

// takeTask removes and returns a line's next task. It returns nil if the line is empty, and then also removes the line
// with this id from t.lines.
func (t *tasks) takeTask(id string, l *line) task {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(l.tasks) == 0 {
		if t.lines[id] == l {
			delete(t.lines, id)
		}
		return nil
	}
	do := l.tasks[0]
	l.tasks = l.tasks[1:]
	return do
}
