// SPDX-License-Identifier: Apache-2.0

package admission

import "slices"

// tally counts requests, in all and by their function and caller.
type tally struct {
	total            int
	function, caller map[string]int
}

func newTally() tally { return tally{function: map[string]int{}, caller: map[string]int{}} }

// add counts n more of a claim, or fewer if n is negative. What is zero is forgotten.
func (t *tally) add(claim Claim, n int) {
	t.total += n
	change(t.function, claim.Function, n)
	if claim.Caller != "" {
		change(t.caller, claim.Caller, n)
	}
}

func change(counts map[string]int, key string, n int) {
	counts[key] += n
	if counts[key] == 0 {
		delete(counts, key)
	}
}

// share is how many there are of a claim's function and of its caller, together.
func (t *tally) share(claim Claim) int { return t.function[claim.Function] + t.caller[claim.Caller] }

// evaluation is one that has a slot.
type evaluation struct {
	claim   Claim
	reserve *reserve // that its slot belongs to; nil for the others
}

// reserve is slots that only a function, or a caller, that runs nothing may start in.
type reserve struct {
	size int
	used []*evaluation
}

func (r *reserve) full() bool { return len(r.used) >= r.size }

// slots are what evaluations run in.
type slots struct {
	concurrent         int
	running            tally
	functions, callers reserve
}

func newSlots(limits Limits) slots {
	reserve := reserve{size: limits.Reserve}
	return slots{concurrent: limits.Concurrent, running: newTally(), functions: reserve, callers: reserve}
}

// reserve returns the reserve that a claim may start in now; nil if it has to wait.
func (s *slots) reserve(claim Claim) *reserve {
	switch {
	case s.running.function[claim.Function] == 0 && !s.functions.full():
		return &s.functions
	case claim.Caller != "" && s.running.caller[claim.Caller] == 0 && !s.callers.full():
		return &s.callers
	default:
		return nil
	}
}

// fits reports whether an evaluation may start now.
func (s *slots) fits(claim Claim) bool {
	return s.running.total < s.concurrent || s.reserve(claim) != nil
}

// take takes a slot for an evaluation; nil if there is none.
func (s *slots) take(claim Claim) *evaluation {
	e := &evaluation{claim: claim}
	if s.running.total >= s.concurrent {
		if e.reserve = s.reserve(claim); e.reserve == nil {
			return nil
		}
		e.reserve.used = append(e.reserve.used, e)
	}
	s.running.add(claim, 1)
	return e
}

// free gives the slot of an evaluation back. If it is none of a reserve, an evaluation in a
// reserve moves into it, so that the reserves are free again as soon as possible.
func (s *slots) free(e *evaluation) {
	s.running.add(e.claim, -1)
	if e.reserve == nil {
		e = s.inReserve()
	}
	if e == nil {
		return
	}
	e.reserve.used = slices.DeleteFunc(e.reserve.used, func(other *evaluation) bool { return other == e })
	e.reserve = nil
}

// inReserve returns an evaluation of the reserve that is used more; nil if none is used.
func (s *slots) inReserve() *evaluation {
	used := s.functions.used
	if len(s.callers.used) > len(used) {
		used = s.callers.used
	}
	if len(used) == 0 {
		return nil
	}
	return used[0]
}
