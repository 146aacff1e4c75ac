// SPDX-License-Identifier: Apache-2.0

package process

import "slices"

// State is the state of a program.
type State string

// States of a program. It is "waiting" until the server on which it depends accepts connections. It is "failed" between
// an exit and the next start. It is "held" while a file in the directory [Supervisor.Holds] prevents its start.
const (
	Waiting State = "waiting"
	Running State = "running"
	Failed  State = "failed"
	Held    State = "held"
)

// Status is the status of a program.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// PID is the process ID in the cluster's PID namespace, or 0 if the program does not run.
	PID      int `json:"pid,omitempty"`
	Restarts int `json:"restarts"`
	// LastExit describes the program's last exit, such as "exit status 3".
	LastExit string `json:"lastExit,omitempty"`
}

// updateStatus changes the status of program i and then calls Changed. The lock keeps calls of Changed in order.
func (s *Supervisor) updateStatus(i int, change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status[i])
	if s.Changed != nil {
		s.Changed(slices.Clone(s.status))
	}
}
