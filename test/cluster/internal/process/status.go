package process

import "slices"

// State is what a program is doing.
type State string

// A program waits for what it needs, runs, has ended and will be started again, or
// is kept from that.
const (
	Waiting State = "waiting"
	Running State = "running"
	Failed  State = "failed"
	Held    State = "held"
)

// Status is what became of a program.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// PID counts from the start of the cluster's own process namespace.
	PID      int `json:"pid,omitempty"`
	Restarts int `json:"restarts"`
	// LastExit says how the program ended the last time.
	LastExit string `json:"lastExit,omitempty"`
}

// update changes the status of program i and reports all of them, in order.
func (s *Supervisor) update(i int, change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status[i])
	if s.Changed != nil {
		s.Changed(slices.Clone(s.status))
	}
}
