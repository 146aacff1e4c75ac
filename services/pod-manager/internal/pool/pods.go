// SPDX-License-Identifier: Apache-2.0

package pool

import "time"

// goneFor is how long the end of a pod is remembered, which is longer than any event about
// it can be late.
const goneFor = 10 * time.Minute

// pods are the pods of all pools.
type pods struct {
	byName map[string]*pod
	// ids counts the pods by id, foreign ones included.
	ids map[string]int
	// foreign are the ids of other function runners' pods, by the pod's name.
	foreign map[string]string
	// gone are the UIDs of pods that are gone, with when: a late event must not bring
	// them back.
	gone map[string]time.Time
	// removals are the pods that drain or are deleted.
	removals map[*pod]struct{}
}

func newPods() pods {
	return pods{
		byName: make(map[string]*pod), ids: make(map[string]int),
		foreign: make(map[string]string), gone: make(map[string]time.Time), removals: make(map[*pod]struct{}),
	}
}

// add adds a pod. There is none of its name.
func (ps *pods) add(p *pod) {
	ps.byName[p.name] = p
	ps.count(p.id, 1)
}

// remove removes a pod that is gone.
func (ps *pods) remove(p *pod, now time.Time) {
	delete(ps.byName, p.name)
	delete(ps.removals, p)
	ps.count(p.id, -1)
	if p.uid != "" {
		ps.gone[p.uid] = now
	}
}

// setForeign records the id of a foreign pod; empty if the pod is gone.
func (ps *pods) setForeign(name, id string) {
	if former, ok := ps.foreign[name]; ok {
		ps.count(former, -1)
		delete(ps.foreign, name)
	}
	if id != "" {
		ps.foreign[name] = id
		ps.count(id, 1)
	}
}

func (ps *pods) count(id string, n int) {
	if ps.ids[id] += n; ps.ids[id] == 0 {
		delete(ps.ids, id)
	}
}

// freeSlot returns the lowest slot of a pool whose id no pod has, of whatever function or
// function runner, draining and deleting ones included: their names and Services are still
// taken. A pod that was found may have the name for a slot and the label of another one.
func (ps *pods) freeSlot(c Config, p *pool) (slot int, name string) {
	for slot = 1; ; slot++ {
		name = c.PodName(p.function, slot, p.predecessors[slot])
		if ps.byName[name] == nil && ps.ids[c.PodID(p.function, slot)] == 0 {
			return slot, name
		}
	}
}

// going counts the pods that do not count as capacity any more. A pod that takes so long to go
// that it may never does not belong to them.
func (ps *pods) going(now time.Time) int {
	n := 0
	for p := range ps.removals {
		if now.Sub(p.since) < deletionTimeout {
			n++
		}
	}
	return n
}

// follow records whether a pod drains or is deleted. Every change of a pod's state calls it.
func (ps *pods) follow(p *pod) {
	switch {
	case p.state.usable():
		delete(ps.removals, p)
	case ps.byName[p.name] == p:
		ps.removals[p] = struct{}{}
	}
}
