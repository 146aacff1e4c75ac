package fnproc

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// StockConfig says what a Stock keeps.
type StockConfig struct {
	// Keep returns how many processes to keep started of the program at path. It is
	// asked often, by any goroutine, and must not call the Stock.
	Keep func(path string) int
	// Total is how many to keep of all programs together; zero is none.
	Total int
	// Unused is how long to keep processes of a command that is not in use.
	Unused time.Duration
	// Busy is how many evaluations have to run for no process to be started, nor right
	// after: they need the processors more. Zero is one for each processor.
	Busy int
	// Log gets a line for each process that ended before it was used; nil is for none.
	Log *slog.Logger
}

// Stock is processes that were started and wait for their input. Each is used for one
// evaluation and never again, so that only the time that a function takes to start is
// saved, and evaluations are as separate as without.
//
// A process is kept of a command that is in use or was prepared for. What it writes
// before it has its input is part of its evaluation's output and log, and of their caps,
// up to 64 KiB; one that writes more is ended. A process that ended before it was used
// is never handed out, and the next one is started the later the more of them did. A
// command's processes go when it is run and its program's file is another one.
type Stock struct {
	cfg   StockConfig
	nudge chan struct{} // of size one: run looks at everything
	ends  sync.WaitGroup

	mu      sync.Mutex
	shelves *shelves
}

// NewStock returns an empty Stock. [Runner.Maintain] fills it.
func NewStock(cfg StockConfig) *Stock {
	if cfg.Busy == 0 {
		cfg.Busy = runtime.GOMAXPROCS(0)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Stock{cfg: cfg, nudge: make(chan struct{}, 1), shelves: newShelves(cfg)}
}

// Changed tells the Stock that Keep returns something else than before.
func (s *Stock) Changed() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Waiting returns how many processes wait for their evaluations.
func (s *Stock) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shelves.kept
}

// prepare notes that cmd will be in use.
func (s *Stock) prepare(cmd Command) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shelves.want(cmd, time.Now())
	s.Changed()
}

// run starts and ends processes until ctx ends, and then ends all that are idle.
func (s *Stock) run(ctx context.Context, reaper *Reaper) {
	if s == nil {
		return
	}
	for ctx.Err() == nil {
		todo := s.next()
		if todo.start != nil {
			s.start(todo.start, reaper)
			continue
		}
		s.wait(ctx, todo.wake)
	}
	s.mu.Lock()
	s.shelves.cfg.Keep = func(string) int { return 0 }
	s.mu.Unlock()
	s.next()
	s.ends.Wait()
}

// next retires what is to be retired, and returns what else to do.
func (s *Stock) next() plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	todo := s.shelves.next(time.Now())
	for _, p := range todo.retire {
		p.retire()
	}
	return todo
}

// wait returns at the given time, when something has happened, or when ctx ends.
func (s *Stock) wait(ctx context.Context, until time.Time) {
	var timeUp <-chan time.Time
	if !until.IsZero() {
		timeUp = time.After(time.Until(until))
	}
	select {
	case <-ctx.Done():
	case <-s.nudge:
	case <-timeUp:
	}
}

// start starts a process and puts it on its shelf.
func (s *Stock) start(sh *shelf, reaper *Reaper) {
	p, err := startIdle(sh.cmd, reaper)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed(sh, err.Error())
		return
	}
	s.shelves.put(sh, p)
	s.ends.Go(func() { s.attend(sh, p) })
}

// attend waits for the end of a process, and frees what belongs to nobody then.
func (s *Stock) attend(sh *shelf, p *process) {
	<-p.exited
	p.idle.end()
	if p.idle.taken() {
		return
	}
	state, err := p.finish()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.shelves.drop(sh, p) {
		return // it was retired
	}
	why := outcome(state).Status
	if reason := p.killedFor(); reason != nil {
		err = reason
	}
	if err != nil {
		why = err.Error()
	}
	s.failed(sh, why)
	s.Changed()
}

// failed notes that a process was of no use. The caller holds mu.
func (s *Stock) failed(sh *shelf, why string) {
	wait := sh.failed(time.Now())
	s.cfg.Log.Info("a function that was started before its evaluation did not wait for it",
		"path", sh.cmd.Path, "reason", why, "next_in", wait)
}
