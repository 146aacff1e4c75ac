// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// caller evaluates a function once, on another pod if one fails it, as the gateway does.
type caller struct {
	world    *world
	id       pool.LeaseID // of this attempt
	attempt  int
	function pool.Function
	hold     time.Duration // how long the evaluation takes
	timeout  time.Duration // until it gives up; 0 for never
	avoid    []string
	// poison reports whether the evaluation breaks its pod.
	poison bool
	ended  func() // is called when it was served; may be nil
}

const maxCallerAttempts = 3

func (w *world) call(c caller) {
	c.world = w
	w.callers[c.id] = &c
	if c.timeout > 0 {
		w.after(c.timeout, func() {
			if w.callers[c.id] == &c {
				c.leave("")
			}
		})
	}
	w.tell(pool.LeaseRequested{Lease: c.id, Function: c.function, Avoid: c.avoid})
}

// granted uses the pod.
func (c *caller) granted(a pool.Grant) {
	w := c.world
	w.after(c.hold, func() {
		if w.callers[c.id] != c {
			return
		}
		p, ok := w.kube.pods[a.Pod]
		served := ok && p.seen.UID == a.UID && p.alive() && !p.unhealthy.After(w.now)
		switch {
		case c.poison && served && c.attempt == 0:
			p.unhealthy = w.now.Add(time.Duration(w.roll(6, "poison", c.id)) * time.Second)
			c.again(a.Pod, "it closed the connection")
		case !served:
			c.again(a.Pod, "connection refused")
		default:
			c.leave("")
			if c.ended != nil {
				c.ended()
			}
		}
	})
}

// again gives back a broken pod, and asks for another. That may arrive first.
func (c *caller) again(pod, broken string) {
	if c.attempt+1 == maxCallerAttempts {
		c.leave(broken)
		return
	}
	next := *c
	next.id = c.id + 1
	next.attempt = c.attempt + 1
	next.avoid = append(next.avoid[:len(next.avoid):len(next.avoid)], pod)
	if c.world.fault(2, "overtaken", c.id) {
		c.world.call(next)
		c.leave(broken)
		return
	}
	c.leave(broken)
	c.world.call(next)
}

// leave ends a lease, or the wait for one.
func (c *caller) leave(broken string) {
	delete(c.world.callers, c.id)
	c.world.tell(pool.LeaseEnded{Lease: c.id, Broken: broken})
}

func (c *caller) rejected() { delete(c.world.callers, c.id) }

// restart ends the manager and begins another one. The streams of all callers break:
// callers that waited ask the new one.
func (w *world) restart() {
	w.trace("   ", "the manager restarts")
	w.epoch++
	waiting := make([]caller, 0, len(w.callers))
	for _, id := range sortedKeys(w.callers) {
		if _, ok := w.referee.wants[id]; ok && w.callers[id].attempt+1 < maxCallerAttempts {
			waiting = append(waiting, *w.callers[id])
		}
	}
	clear(w.callers)
	clear(w.gone)
	clear(w.heard)
	w.referee = newReferee(w.setup.config())
	w.kube.adopt()
	for _, c := range waiting {
		c.id++
		c.attempt++
		w.call(c)
	}
}
