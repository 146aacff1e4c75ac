// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// do does what a stimulus asks for.
func (w *world) do(s stimulus) {
	w.trace("   ", s)
	f := pool.Function{Reference: s.Function, Digest: "sha256:" + s.Function}
	for_ := time.Duration(1+s.N*s.N) * time.Second
	switch s.What {
	case "request":
		w.call(caller{
			id:       pool.LeaseID(s.ID * maxCallerAttempts),
			function: f,
			hold:     s.Hold,
			timeout:  s.Timeout,
			poison:   s.N == 0,
		})
	case "restart":
		w.restart()
	case "minimum":
		w.tell(pool.MinPodsSet{Function: f, Pods: s.N % 2})
	case "nodes full":
		w.kube.full = w.now.Add(for_)
	case "image broken":
		w.kube.broken = map[string]time.Time{s.Function: w.now.Add(for_)}
	case "api down":
		w.kube.down = w.now.Add(for_)
	case "template":
		w.setup.Template = fmt.Sprintf("v%d", s.N%4)
		w.tell(pool.Configured{Config: w.setup.config()})
	case "settings":
		w.setup.Settings = fmt.Sprintf("s%d", s.N%4)
		w.tell(pool.Configured{Config: w.setup.config()})
	case "limits":
		w.setup.MaxPods = 1 + s.N%3
		w.setup.MaxConcurrency = 1 + s.N%4
		w.setup.MaxQueue = 1 + s.N
		w.tell(pool.Configured{Config: w.setup.config()})
	case "global":
		w.setup.Quota = s.N % 4
		w.tell(pool.Configured{Config: w.setup.config()})
	case "replica creates":
		slot, predecessor := 1+s.N%3, ""
		if s.N%5 == 0 {
			predecessor = "another one"
		}
		w.kube.born(pool.Create{
			Function: f, Slot: slot, Name: simName(f, slot, predecessor), ReclaimAfter: w.now.Add(w.setup.TTL),
		}, w.setup)
	default:
		if p := w.kube.any(f, s.N); p != nil {
			w.doToPod(s.What, p, for_)
		}
	}
}

// any returns a pod of a function.
func (k *kube) any(f pool.Function, n int) *kubePod {
	pods := slices.DeleteFunc(k.sorted(), func(p *kubePod) bool { return p.seen.Function != f })
	if len(pods) == 0 {
		return nil
	}
	return pods[n%len(pods)]
}

// doToPod does what a stimulus asks for to a pod.
func (w *world) doToPod(what string, p *kubePod, for_ time.Duration) {
	k := &w.kube
	switch what {
	case "crash", "evict":
		if p.seen.Problem.Kind == pool.None {
			p.seen.Problem = pool.Problem{Kind: pool.Lost, Reason: "the container ended: " + what, OutOfMemory: what == "crash"}
			k.changed(p)
		}
	case "end":
		k.end(p)
	case "kill":
		k.kill(p)
	case "sicken":
		p.unhealthy = w.now.Add(for_)
	case "container restarts":
		if p.alive() {
			p.seen.Phase = pool.PhaseStarting
			p.seen.Problem = pool.Problem{Kind: pool.Stuck, Reason: "the container ended with code 1"}
			k.changed(p)
			k.proceed(p)
		}
	case "strip":
		p.seen.ReclaimAfter = time.Time{}
		k.changed(p)
	case "replica extends":
		p.seen.ReclaimAfter = w.now.Add(w.setup.TTL)
		k.changed(p)
	default:
		panic("no such stimulus: " + what)
	}
}
