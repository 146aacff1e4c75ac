// SPDX-License-Identifier: Apache-2.0

package admission

import "slices"

// tally counts evaluations or requests, in total, by function and by caller.
type tally struct {
	total            int
	function, caller map[string]int
}

func newTally() tally { return tally{function: map[string]int{}, caller: map[string]int{}} }

func (t *tally) addCount(claim Claim, n int) {
	t.total += n
	changeCount(t.function, claim.Function, n)
	if claim.Caller != "" {
		changeCount(t.caller, claim.Caller, n)
	}
}

func changeCount(counts map[string]int, key string, n int) {
	counts[key] += n
	if counts[key] == 0 {
		delete(counts, key)
	}
}

// shareOf returns the share of a function and a caller, the sum of their counts. The smallest share gets a slot first.
func (t *tally) shareOf(claim Claim) int { return t.function[claim.Function] + t.caller[claim.Caller] }

type evaluation struct {
	claim   Claim
	reserve *reserve // nil for a regular slot
}

// reserve is a set of additional slots, either for functions or for callers without running evaluations.
type reserve struct {
	size int
	used []*evaluation
}

func (r *reserve) isFull() bool { return len(r.used) >= r.size }

// slots manages the slots of evaluations.
type slots struct {
	concurrent         int
	running            tally
	functions, callers reserve
}

func newSlots(limits Limits) slots {
	reserve := reserve{size: limits.Reserve}
	return slots{concurrent: limits.Concurrent, running: newTally(), functions: reserve, callers: reserve}
}

// freeReserve returns a reserve with a free slot for an evaluation of the claim, or nil. The function and the caller
// may use their reserves only while they run no evaluations.
func (s *slots) freeReserve(claim Claim) *reserve {
	switch {
	case s.running.function[claim.Function] == 0 && !s.functions.isFull():
		return &s.functions
	case claim.Caller != "" && s.running.caller[claim.Caller] == 0 && !s.callers.isFull():
		return &s.callers
	default:
		return nil
	}
}

// fits reports whether an evaluation of the claim's function and caller may start now.
func (s *slots) fits(claim Claim) bool {
	return s.running.total < s.concurrent || s.freeReserve(claim) != nil
}

// takeSlot returns a new evaluation with a slot, or nil if no slot is free. It uses a reserved slot only if no regular
// slot is free.
func (s *slots) takeSlot(claim Claim) *evaluation {
	e := &evaluation{claim: claim}
	if s.running.total >= s.concurrent {
		if e.reserve = s.freeReserve(claim); e.reserve == nil {
			return nil
		}
		e.reserve.used = append(e.reserve.used, e)
	}
	s.running.addCount(claim, 1)
	return e
}

// freeSlot frees the slot of an evaluation that has ended. If it is a regular slot, an evaluation in a reserved slot
// moves to it. Reserved slots thus become free as soon as possible.
func (s *slots) freeSlot(e *evaluation) {
	s.running.addCount(e.claim, -1)
	if e.reserve == nil {
		e = s.inReserve()
	}
	if e == nil {
		return
	}
	e.reserve.used = slices.DeleteFunc(e.reserve.used, func(other *evaluation) bool { return other == e })
	e.reserve = nil
}

// inReserve returns an evaluation in a reserved slot, or nil. The evaluation is from the reserve with more used slots.
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
