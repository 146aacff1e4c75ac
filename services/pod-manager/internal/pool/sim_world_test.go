// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"container/heap"
	"fmt"
	"io"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// world is everything around a machine: callers, a Kubernetes that is slow, loses
// things and repeats itself, and time. It is the same each time for the same script.
type world struct {
	seed    uint64
	now     time.Time
	agenda  agenda
	order   int
	setup   setup
	referee *referee
	// epoch counts the managers: what was under way for an earlier one comes to nothing.
	epoch int
	calm  bool // no more faults, from now on
	idle  bool // no more callers
	watch func(pool.Action)
	gone  map[string]time.Time // pods that were known and are gone, by name
	// heard is when a waiting lease of a function last got an answer.
	heard   map[pool.Function]time.Time
	kube    kube
	callers map[pool.LeaseID]*caller
	// err is the first promise that was broken; nothing happens after it.
	err error
	// script is where to write down what happens; nil for nowhere.
	script io.Writer
}

// task is something that will happen.
type task struct {
	at    time.Time
	order int
	do    func()
}

// agenda is what will happen, the next thing first.
type agenda []task

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || (a[i].at.Equal(a[j].at) && a[i].order < a[j].order)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(task)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

func newWorld(seed uint64, s setup) *world {
	w := &world{
		seed:    seed,
		now:     start,
		setup:   s,
		callers: make(map[pool.LeaseID]*caller),
		gone:    make(map[string]time.Time),
		heard:   make(map[pool.Function]time.Time),
		watch:   func(pool.Action) {},
	}
	w.kube.world = w
	w.kube.pods = make(map[string]*kubePod)
	w.referee = newReferee(s.config())
	w.every(time.Second, func() {
		w.tell(pool.Tick{})
		w.judgeSilence()
	})
	w.every(15*time.Second, w.kube.list)
	return w
}

// roll returns a number below n. It depends on the seed and on what it is for, and
// on nothing that happened before: leaving out a part of a script changes little else.
func (w *world) roll(n int, what string, args ...any) int {
	x := scramble(w.seed ^ fnv64(what))
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			x = scramble(x ^ fnv64(v))
		case int:
			x = scramble(x ^ uint64(v))
		case pool.LeaseID:
			x = scramble(x ^ uint64(v))
		default:
			panic(fmt.Sprintf("%T is nothing to roll dice for", arg))
		}
	}
	return int(x % uint64(n))
}

// fnv64 is a hash of a text.
func fnv64(text string) uint64 {
	x := uint64(0xcbf29ce484222325)
	for _, b := range []byte(text) {
		x = (x ^ uint64(b)) * 0x100000001b3
	}
	return x
}

// scramble has each bit of a number change all others.
func scramble(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// fault reports, one time in n, that something goes wrong.
func (w *world) fault(n int, what string, args ...any) bool {
	return !w.calm && w.setup.Faults && w.roll(n, what, args...) == 0
}

// delay is how long something takes: mostly short, sometimes up to long.
func (w *world) delay(long time.Duration, what string, args ...any) time.Duration {
	short := long / 20
	if w.roll(4, "long delay "+what, args...) == 0 {
		short = long
	}
	return short * time.Duration(1+w.roll(100, "delay "+what, args...)) / 100
}

func (w *world) after(d time.Duration, do func()) {
	w.order++
	heap.Push(&w.agenda, task{at: w.now.Add(d), order: w.order, do: do})
}

func (w *world) every(d time.Duration, do func()) {
	w.after(d, func() {
		do()
		w.every(d, do)
	})
}

// run lets time pass until done says so, or until the limit, or a broken promise. It
// reports whether it was done.
func (w *world) run(limit time.Duration, done func() bool) bool {
	end := w.now.Add(limit)
	for w.err == nil && !done() {
		next := w.agenda[0]
		if next.at.After(end) {
			w.now = end
			return false
		}
		heap.Pop(&w.agenda)
		w.now = next.at
		next.do()
	}
	return w.err == nil
}

// tell has the machine handle an event, and does what it asks for.
func (w *world) tell(event pool.Event) {
	if w.err != nil {
		return
	}
	if _, tick := event.(pool.Tick); !tick {
		w.trace("<- ", event)
	}
	if e, gone := event.(pool.PodGone); gone {
		observed := pool.PodObserved{Observation: pool.Observation{Name: e.Name, UID: e.UID}}
		if w.referee.found(observed) == 0 {
			w.gone[e.Name] = w.now
		}
	}
	actions, err := w.referee.handle(w.now, event)
	for _, action := range actions {
		w.trace("     -> ", action)
	}
	w.err = err
	for _, action := range actions {
		w.watch(action)
		w.carryOut(action)
	}
}

func (w *world) carryOut(action pool.Action) {
	switch a := action.(type) {
	case pool.Grant:
		w.heard[a.Function] = w.now
		w.callers[a.Lease].granted(a)
	case pool.Reject:
		w.heard[w.callers[a.Lease].function] = w.now
		w.callers[a.Lease].rejected()
	case pool.Create:
		w.checkName(a.Name)
		w.kube.create(a)
	case pool.Delete:
		w.kube.delete(a)
	case pool.Extend:
		w.kube.extend(a)
	case pool.Probe:
		w.kube.probe(a)
	}
}

// later tells the machine that there is now, unless it is another one by then.
func (w *world) later(d time.Duration, event pool.Event) {
	epoch := w.epoch
	w.after(d, func() {
		if w.epoch == epoch {
			w.tell(event)
		}
	})
}

// checkName rejects a name that a pod had which the manager knows to be gone. Ten
// minutes later it may have forgotten that.
func (w *world) checkName(name string) {
	if at, gone := w.gone[name]; gone && w.now.Sub(at) < 10*time.Minute && w.err == nil {
		w.err = fmt.Errorf("a pod is called %s, as one was that is gone", name)
	}
}

// trace writes down what happens.
func (w *world) trace(mark string, what any) {
	if w.script != nil {
		fmt.Fprintf(w.script, "%8.3f %s%s\n", w.now.Sub(start).Seconds(), mark, describe(what))
	}
}
