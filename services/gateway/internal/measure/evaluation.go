// SPDX-License-Identifier: Apache-2.0

package measure

import "time"

// Evaluation is what is measured of one evaluation: the front door begins it, evaluators fill it in, and
// metrics, spans and the log have it in the end. Only the goroutine of the evaluation uses it. A nil
// Evaluation records nothing.
type Evaluation struct {
	active    *Active
	phase     string // empty before the first and after the last
	resolving time.Duration
	leased    Leased
	attempts  int
}

// Leased is the pod or the sandbox that evaluated; it is empty for a local binary.
type Leased struct {
	Pod, Namespace string
	// Image is the reference with the digest.
	Image string
	// ColdStart reports whether the pod was started for the evaluation, or was still starting.
	ColdStart bool
}

// Enter records that the evaluation is in the named phase now.
func (e *Evaluation) Enter(phase string) {
	if e == nil || e.phase == phase {
		return
	}
	e.active.move(e.phase, phase)
	e.phase = phase
}

// End records that the evaluation has ended.
func (e *Evaluation) End() { e.Enter("") }

// Resolving adds d to the time that it takes to resolve the image: the front door resolves the name, and
// the pod-manager, with each lease, the digest.
func (e *Evaluation) Resolving(d time.Duration) {
	if e != nil {
		e.resolving += d
	}
}

// Attempt records that an attempt begins: to get a pod and to evaluate there, or in a local process.
func (e *Evaluation) Attempt() {
	if e != nil {
		e.attempts++
	}
}

// On records what the attempt runs on. Cold starts of earlier attempts count.
func (e *Evaluation) On(leased Leased) {
	if e != nil {
		leased.ColdStart = leased.ColdStart || e.leased.ColdStart
		e.leased = leased
	}
}

// Resolved returns how long it took to resolve the image so far.
func (e *Evaluation) Resolved() time.Duration { return e.resolving }

// Leased returns the pod of the last attempt; it is empty if there was none.
func (e *Evaluation) Leased() Leased { return e.leased }

// Attempts returns the number of attempts.
func (e *Evaluation) Attempts() int { return e.attempts }
