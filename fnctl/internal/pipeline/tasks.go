// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// task renders one package, after the packages inside it and concurrently with other packages. It implements
// [Observer], and stores the events of the package's functions. Users then see the packages in a fixed order.
type task struct {
	plan *Plan
	subs []*task
	// index is the package's position in a serial rendering, in which packages run one after another. first is the lowest
	// index among this package and the packages inside it.
	index, first int

	events chan func(Observer) // closed after the last event
	done   chan struct{}       // closed when the fields below are final
	output []*yaml.RNode
	result Rendering
	err    error

	mu sync.Mutex
	// live is the observer that shows the task's running function to the user. It is nil if no function is shown.
	live           Observer
	started, shown int
}

// newTasks returns a task for each package of a plan. Inner packages precede outer packages, as in a serial rendering.
func newTasks(plan *Plan) []*task {
	var tasks []*task
	var add func(*Plan) *task
	add = func(plan *Plan) *task {
		maxEvents := 1 + 2*(len(plan.Mutators)+len(plan.Validators))
		t := &task{
			plan: plan, first: len(tasks), events: make(chan func(Observer), maxEvents), done: make(chan struct{}),
		}
		for _, sub := range plan.Subpackages {
			t.subs = append(t.subs, add(sub))
		}
		t.index = len(tasks)
		tasks = append(tasks, t)
		return t
	}
	add(plan)
	return tasks
}

// innerFirst renders inner packages first, because functions of outer packages also receive the resources of inner
// packages. Up to r.Jobs packages run concurrently, but events and results are in the order of a serial rendering.
func (r *Renderer) innerFirst(ctx context.Context, plan *Plan) (*Rendering, error) {
	tasks := newTasks(plan)
	if r.Jobs > 1 {
		stop := r.startTasks(ctx, tasks)
		defer stop()
	}
	rendering, root := &Rendering{}, tasks[len(tasks)-1]
	for _, t := range tasks {
		if r.Jobs > 1 {
			t.replayEvents(r.Observer)
		} else {
			t.renderPackage(ctx, r)
		}
		rendering.Mutations = append(rendering.Mutations, t.result.Mutations...)
		rendering.Validations = append(rendering.Validations, t.result.Validations...)
		if t.err != nil {
			rendering.Resources = root.resourcesUpTo(t.index)
			return rendering, t.err
		}
	}
	rendering.Resources = root.output
	return rendering, nil
}

// renderPackage runs the package's functions on its resources and on the output of the packages inside it.
func (t *task) renderPackage(ctx context.Context, r *Renderer) {
	resources := slices.Clone(t.plan.Package.Resources)
	for _, sub := range t.subs {
		resources = append(resources, sub.output...)
	}
	t.output, t.err = (&run{Renderer: r, result: &t.result}).runPipeline(ctx, t.plan, resources)
}

// startTasks runs the tasks concurrently and returns at once. If a task fails, it skips later tasks, because a serial
// rendering would not reach them. Callers must call the returned function, which cancels all tasks and waits for them.
func (r *Renderer) startTasks(ctx context.Context, tasks []*task) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	slots := make(chan struct{}, r.Jobs)
	var mu sync.Mutex
	last := len(tasks) // index of the last task to run
	var running sync.WaitGroup
	for _, t := range tasks {
		running.Go(func() {
			defer close(t.events)
			defer close(t.done)
			for _, sub := range t.subs {
				<-sub.done
			}
			slots <- struct{}{}
			defer func() { <-slots }()
			mu.Lock()
			skip := t.index > last
			mu.Unlock()
			if skip {
				return
			}
			own := *r
			own.Observer = t
			if t.renderPackage(ctx, &own); t.err != nil {
				mu.Lock()
				last = min(last, t.index)
				mu.Unlock()
			}
		})
	}
	return func() {
		cancel()
		mu.Lock()
		last = -1
		mu.Unlock()
		running.Wait()
	}
}

// replayEvents passes the stored events of a task to observer, and then each new event until the task is done.
func (t *task) replayEvents(observer Observer) {
	for event := range t.events {
		event(observer)
	}
}

// resourcesUpTo returns the resources of a package tree at the end of a failed rendering. The rendering is serial and
// fails at the task with the given index. Packages that it does not reach are omitted.
func (t *task) resourcesUpTo(index int) []*yaml.RNode {
	if t.index <= index {
		return t.output
	}
	resources := slices.Clone(t.plan.Package.Resources)
	for _, sub := range t.subs {
		if sub.first <= index {
			resources = append(resources, sub.resourcesUpTo(index)...)
		}
	}
	return resources
}

// Entered implements [Observer].
func (t *task) Entered(plan *Plan) { t.events <- func(o Observer) { o.Entered(plan) } }

// Started implements [Observer].
func (t *task) Started(call Call, resources int) {
	t.mu.Lock()
	t.started++
	t.mu.Unlock()
	t.events <- func(o Observer) {
		o.Started(call, resources)
		t.setLive(o)
	}
}

// Finished implements [Observer].
func (t *task) Finished(call Call, outcome Outcome) {
	t.events <- func(o Observer) {
		t.setLive(nil)
		o.Finished(call, outcome)
	}
}

// setLive stores the observer that shows this task's running function to the user, or nil if no function is shown.
func (t *task) setLive(live Observer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live = live; live != nil {
		t.shown++
	}
}

// Waiting implements [Observer]. It passes on the event only while the user sees the running function. Otherwise, it
// drops the event, because the reason for waiting would be out of date when the user sees the function.
func (t *task) Waiting(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil && t.shown == t.started {
		t.live.Waiting(what)
	}
}
