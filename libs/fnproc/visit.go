package fnproc

import "time"

// Prefork says whether a process was started before its evaluation.
type Prefork int

// The ways to get a process.
const (
	PreforkOff  Prefork = iota // none is kept started of this command
	PreforkMiss                // there was none, so one was started
	PreforkHit                 // one was there
)

func (p Prefork) String() string { return [...]string{"off", "miss", "hit"}[p] }

// visit is one evaluation as a Stock sees it.
type visit struct {
	stock *Stock // nil without
	shelf *shelf // nil if nothing is kept of the command
	// process is one that was started before; nil if there is none. Its owner is who
	// began the visit.
	process *process
}

// begin notes that an evaluation begins. The caller has to call end.
//
// Without input nothing can be told of whether a process has read it, so there is no
// process for that.
func (s *Stock) begin(cmd Command, stdin []byte) *visit {
	v := &visit{stock: s}
	if s == nil {
		return v
	}
	file, ok := identify(cmd)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shelves.began()
	v.shelf = s.shelves.want(cmd, time.Now())
	if v.shelf == nil || len(stdin) == 0 {
		return v
	}
	for p := s.shelves.pop(v.shelf); p != nil; p = s.shelves.pop(v.shelf) {
		switch {
		case !ok || p.idle.file != file:
			p.retire()
		case p.take():
			v.process = p
			if s.shelves.early(v.shelf) {
				s.Changed()
			}
			return v
		default:
			s.failed(v.shelf, "it has ended")
		}
	}
	return v
}

// end notes the evaluation's end.
func (v *visit) end() {
	if v.stock == nil {
		return
	}
	v.stock.mu.Lock()
	defer v.stock.mu.Unlock()
	now := time.Now()
	v.stock.shelves.ended(now)
	if v.shelf == nil {
		return
	}
	v.shelf.lastUse = now
	if v.stock.shelves.early(v.shelf) {
		v.stock.Changed()
	}
}

// worked notes that the process was of use.
func (v *visit) worked() {
	v.stock.mu.Lock()
	defer v.stock.mu.Unlock()
	v.shelf.worked()
}

// failed notes that the process was not of use.
func (v *visit) failed() {
	v.stock.mu.Lock()
	defer v.stock.mu.Unlock()
	v.stock.failed(v.shelf, "it ended without reading its input")
}

// without returns how an evaluation stands that had its process started.
func (v *visit) without() Prefork {
	if v.shelf == nil {
		return PreforkOff
	}
	return PreforkMiss
}
