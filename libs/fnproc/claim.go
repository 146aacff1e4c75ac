// SPDX-License-Identifier: Apache-2.0

package fnproc

import "time"

// Prefork is whether a process was started before its evaluation.
type Prefork int

// The ways to get a process.
const (
	PreforkOff  Prefork = iota // this command has no spare processes
	PreforkMiss                // there was none, so one was started
	PreforkHit                 // one was there
)

func (p Prefork) String() string { return [...]string{"off", "miss", "hit"}[p] }

// claim is one evaluation as a PreforkPool sees it.
type claim struct {
	pool *PreforkPool // nil without
	set  *spareSet    // nil if the command has no spare processes
	// process is a spare process, which belongs to the evaluation; nil if there is none.
	process *process
}

// begin records that an evaluation begins. The caller has to call finish.
//
// An evaluation without input gets no spare process: it would be unknown whether the process had
// read its input.
func (pool *PreforkPool) begin(cmd Command, stdin []byte) *claim {
	if pool == nil || cmd.Shared {
		return &claim{}
	}
	c := &claim{pool: pool}
	file, ok := identify(cmd)
	pool.mu.Lock()
	defer pool.mu.Unlock()
	pool.policy.began()
	now := time.Now()
	c.set = pool.policy.want(cmd, now)
	if c.set == nil {
		return c
	}
	c.set.demand.began(now)
	if len(stdin) == 0 {
		return c
	}
	for p := pool.policy.pop(c.set); p != nil; p = pool.policy.pop(c.set) {
		switch {
		case !ok || p.spare.file != file:
			p.retire()
		case p.take():
			c.process = p
			c.set.lastTaken = now
			if pool.policy.urgent(c.set, now) {
				pool.Changed()
			}
			return c
		default:
			pool.failed(c.set, "it has ended")
		}
	}
	return c
}

// finish records the evaluation's end.
func (c *claim) finish() {
	if c.pool == nil {
		return
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	now := time.Now()
	c.pool.policy.ended(now)
	if c.set == nil {
		return
	}
	c.set.lastUse = now
	c.set.demand.ended()
	if c.pool.policy.early(c.set) {
		c.pool.Changed()
	}
}

// worked records that the process was of use.
func (c *claim) worked() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.set.worked()
}

// failed records that the process was not of use.
func (c *claim) failed() {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.pool.failed(c.set, "it ended without reading its input")
}

// without returns the result for an evaluation that had its process started.
func (c *claim) without() Prefork {
	if c.set == nil {
		return PreforkOff
	}
	return PreforkMiss
}
