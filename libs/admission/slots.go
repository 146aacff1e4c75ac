package admission

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

// slots are what evaluations run in.
type slots struct {
	limits  Limits
	running tally
	// functions and callers are how many run in the two reserves.
	functions, callers int
}

func newSlots(limits Limits) slots { return slots{limits: limits, running: newTally()} }

// reserve returns the counter of the reserve that a claim may start in now; nil if it
// has to wait.
func (s *slots) reserve(claim Claim) *int {
	switch {
	case s.running.function[claim.Function] == 0 && s.functions < s.limits.Reserve:
		return &s.functions
	case claim.Caller != "" && s.running.caller[claim.Caller] == 0 && s.callers < s.limits.Reserve:
		return &s.callers
	default:
		return nil
	}
}

// fits reports whether an evaluation may start now.
func (s *slots) fits(claim Claim) bool {
	return s.running.total < s.limits.Concurrent || s.reserve(claim) != nil
}

// take takes a slot for an evaluation, and reports whether there was one.
func (s *slots) take(claim Claim) bool {
	if s.running.total >= s.limits.Concurrent {
		reserve := s.reserve(claim)
		if reserve == nil {
			return false
		}
		*reserve++
	}
	s.running.add(claim, 1)
	return true
}

// free gives the slot of an evaluation back. An evaluation in a reserve moves into the
// slot, so that the reserves are free again as soon as possible.
func (s *slots) free(claim Claim) {
	s.running.add(claim, -1)
	switch {
	case s.callers > 0:
		s.callers--
	case s.functions > 0:
		s.functions--
	}
}

// pass gives the slot of an evaluation to another one.
func (s *slots) pass(from, to Claim) {
	s.running.add(from, -1)
	s.running.add(to, 1)
}
