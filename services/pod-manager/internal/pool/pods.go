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
}

func newPods() pods {
	return pods{
		byName: make(map[string]*pod), ids: make(map[string]int),
		foreign: make(map[string]string), gone: make(map[string]time.Time),
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
	ps.count(p.id, -1)
	if p.uid != "" {
		ps.gone[p.uid] = now
	}
}

// setForeign has a foreign pod of that name have an id; empty if it is gone.
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

// separate drains the younger one of two pods with the same id: they share a Service, so
// what is meant for one may reach the other. Replicas that did not know of each other make
// such twins, and agree on which one is drained.
func separate(s *step, pools []*pool) {
	oldest := make(map[string]*pod)
	for _, p := range pools {
		for _, pod := range p.pods {
			first, taken := oldest[pod.id]
			switch {
			case !pod.serves():
			case !taken:
				oldest[pod.id] = pod
			case pod.older(first):
				oldest[pod.id] = pod
				drainTwin(s, first, pod)
			default:
				drainTwin(s, pod, first)
			}
		}
	}
}

func drainTwin(s *step, twin, first *pod) {
	twin.drain(s, "it shares its id, and so its Service, with the older pod "+first.name, removal{eviction: evictionSurplus})
}
