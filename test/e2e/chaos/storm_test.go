// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// harm is something that breaks. Those of one kind never overlap: another replica makes up for it.
type harm struct {
	name, kind string
	// begin breaks it, and returns what was broken, and what ends that; nothing if there is
	// nothing to break now.
	begin func(ctx context.Context, t *testing.T, storm *storm) (what string, end func())
}

// happening is a harm that happened.
type happening struct {
	harm
	what       string
	begin, end time.Time
	heal       func()
}

// storm has harms happen.
type storm struct {
	sys    *system
	crowd  *crowd
	random *rand.Rand
	busy   map[string]bool // by kind
	all    []*happening
	// harmed are the function pods that were broken.
	harmed []string
}

// rage has harms happen for a time, and returns when all have ended. All of it happens in this
// goroutine.
func (st *storm) rage(ctx context.Context, t *testing.T, d time.Duration) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	next := begin.Add(2 * time.Second)
	for {
		now := <-tick.C
		active := st.tend(ctx, t, now)
		switch {
		case now.Sub(begin) >= d && active == 0:
			return
		case now.Sub(begin) < d && now.After(next):
			st.strike(ctx, t)
			next = time.Now().Add(time.Second + rand.N(3*time.Second))
		}
	}
}

// strike begins a harm of a kind that is whole.
func (st *storm) strike(ctx context.Context, t *testing.T) {
	free := slices.DeleteFunc(slices.Clone(harms), func(h harm) bool { return st.busy[h.kind] })
	if len(free) == 0 {
		return
	}
	h := free[st.random.IntN(len(free))]
	what, heal := h.begin(ctx, t, st)
	if what == "" {
		return
	}
	hold := 5*time.Second + time.Duration(st.random.IntN(7000))*time.Millisecond
	st.busy[h.kind] = true
	st.all = append(st.all, &happening{harm: h, what: what, begin: time.Now(), end: time.Now().Add(hold), heal: heal})
}

// recovery bounds the time in which a program's replicas are ready again, on a machine that is busy.
const recovery = suite.ConditionTimeout

// tend ends harms that are due, and frees kinds that have recovered. It returns how many have not.
func (st *storm) tend(ctx context.Context, t *testing.T, now time.Time) (active int) {
	for _, h := range st.all {
		if h.heal != nil && now.After(h.end) {
			h.heal()
			h.heal = nil
		}
	}
	if st.random.IntN(5) == 0 {
		st.crowd.meet(t)
	}
	for _, h := range st.all {
		if !st.busy[h.kind] || st.last(h.kind) != h {
			continue
		}
		calm, is := h.heal == nil, "broken"
		if calm && st.sys.replicas[h.kind] > 0 {
			calm, is = st.sys.calm(ctx, h.kind)
		}
		if calm {
			delete(st.busy, h.kind)
			continue
		}
		active++
		if now.Sub(h.end) > recovery {
			t.Fatalf("%v after %s of %s: %s", recovery, h.name, h.what, is)
		}
	}
	return active
}

// last returns the last harm of a kind.
func (st *storm) last(kind string) *happening {
	for _, h := range slices.Backward(st.all) {
		if h.kind == kind {
			return h
		}
	}
	return nil
}
