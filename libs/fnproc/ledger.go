package fnproc

// ledger knows which processes are functions that run, and how long each orphan is to
// be left alone: it may still serve any evaluation that was running when it was first
// seen, so it has to wait for those, and for no later ones. A ledger does no I/O and
// is not safe for concurrent use.
//
// An evaluation begins when its process is about to be started, which may be long
// before there is something to evaluate.
type ledger struct {
	newest  uint64              // number of the evaluation that began last
	running map[uint64]struct{} // numbers of the evaluations that have not ended
	// own counts the registrations of each function's pid. There are two for a moment
	// when a pid is used again before its last owner is forgotten.
	own     map[int]int
	orphans map[int]uint64 // pid to the newest evaluation when it was first seen
}

func newLedger() ledger {
	return ledger{running: map[uint64]struct{}{}, own: map[int]int{}, orphans: map[int]uint64{}}
}

// begin notes that an evaluation begins, and returns its number for end.
func (l *ledger) begin() uint64 {
	l.newest++
	l.running[l.newest] = struct{}{}
	return l.newest
}

func (l *ledger) end(evaluation uint64) { delete(l.running, evaluation) }

func (l *ledger) started(pid int) { l.own[pid]++ }

func (l *ledger) forget(pid int) {
	if l.own[pid]--; l.own[pid] <= 0 {
		delete(l.own, pid)
	}
}

// suspects returns the orphans known so far and those of children that are no
// function of ours.
func (l *ledger) suspects(children []int) []int {
	var pids []int
	for pid := range l.orphans {
		pids = append(pids, pid)
	}
	for _, pid := range children {
		_, known := l.orphans[pid]
		if l.own[pid] == 0 && !known {
			pids = append(pids, pid)
		}
	}
	return pids
}

// seen notes that an orphan is alive, and returns the evaluations that it may belong
// to. Its time is over if there are none.
func (l *ledger) seen(pid int) (owners []uint64) {
	since, known := l.orphans[pid]
	if !known {
		since = l.newest
		l.orphans[pid] = since
	}
	for evaluation := range l.running {
		if evaluation <= since {
			owners = append(owners, evaluation)
		}
	}
	return owners
}

// gone notes that an orphan has ended.
func (l *ledger) gone(pid int) { delete(l.orphans, pid) }
