// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// shrink leaves out of a script what it fails without.
func shrink(s script) script {
	for size := len(s.Stimuli); size > 0; size /= 2 {
		for i := 0; i < len(s.Stimuli); {
			shorter := s
			shorter.Stimuli = append(append([]stimulus{}, s.Stimuli[:i]...), s.Stimuli[min(i+size, len(s.Stimuli)):]...)
			if shorter.play(nil) != nil {
				s = shorter
			} else {
				i += size
			}
		}
	}
	if quiet := s; quiet.Setup.Faults {
		if quiet.Setup.Faults = false; quiet.play(nil) != nil {
			return quiet
		}
	}
	return s
}

// play plays a script to the end of all pods, and returns what broke, if anything.
func (s script) play(trace *strings.Builder) (err error) {
	w := newWorld(s.Seed, s.Setup)
	if trace != nil {
		w.script = trace
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	for _, st := range s.Stimuli {
		w.after(st.At, func() { w.do(st) })
	}
	end := start
	if n := len(s.Stimuli); n > 0 {
		end = start.Add(s.Stimuli[n-1].At)
	}
	w.run(time.Hour, func() bool { return w.now.After(end) })
	return w.settle()
}

// settle lets a world come to rest without further faults, and returns an error for what does not.
func (w *world) settle() error {
	w.trace("   ", "no more faults")
	w.calm = true
	for _, f := range []string{"a", "b", "c", "d"} {
		w.tell(pool.MinPodsSet{Function: pool.Function{Reference: f, Digest: "sha256:" + f}})
	}
	// All are served in this time: at most a hundred callers of at most four
	// functions, of whom each may fail a pod, which may take a minute to be replaced.
	if !w.run(30*time.Minute, func() bool { return len(w.callers) == 0 }) {
		return cmp.Or(w.err, fmt.Errorf("leases wait for ever: %v", w.referee.wants))
	}
	if err := w.referee.atRest(); err != nil {
		return err
	}
	// A pod lives for its time to live, then until the next scan; it takes a while
	// until it is gone, and a deletion that was lost is asked for again. Last,
	// pools are forgotten.
	limit := 5*(w.setup.TTL+w.setup.ReadyTimeout+w.setup.Scan+3*time.Minute) + 11*time.Minute
	if !w.run(limit, func() bool { return len(w.kube.pods)+len(w.referee.machine.Functions()) == 0 }) {
		return cmp.Or(w.err, fmt.Errorf("there is no end: %d pods in Kubernetes, %v", len(w.kube.pods), w.referee.pools))
	}
	return w.err
}

// describe is an event or an action on one line.
func describe(x any) string {
	switch e := x.(type) {
	case pool.PodObserved:
		o := e.Observation
		text := fmt.Sprintf("observed %s v%s %s", o.UID, o.ResourceVersion, phase(o.Phase))
		if o.Deleting {
			text += " deleting"
		}
		if o.Problem.Kind != pool.None {
			text += fmt.Sprintf(" problem %d %s", o.Problem.Kind, o.Problem.Reason)
		}
		return text
	case pool.Configured:
		c := e.Config
		return fmt.Sprintf("configured %+v, template %s", c.Limits(pool.Function{}), c.Template)
	case pool.Create:
		return "Create " + e.Name
	case pool.Delete:
		return fmt.Sprintf("Delete %s: %s", e.UID, e.Reason)
	case pool.Extend:
		return fmt.Sprintf("Extend %s by %s", e.UID, e.ReclaimAfter.Sub(start))
	case pool.Report:
		return fmt.Sprintf("Report %d %s %s", e.Lease, phase(e.Waiting.Phase), e.Waiting.Reason)
	case pool.Grant:
		return fmt.Sprintf("Grant %d on %s", e.Lease, e.UID)
	case string, stimulus:
		return fmt.Sprint(x)
	default:
		return fmt.Sprintf("%T %+v", x, x)
	}
}
