// SPDX-License-Identifier: Apache-2.0

package measure

import "time"

// Evaluation is what is measured of one evaluation: the front door begins it, evaluators fill it in, and
// metrics, spans, the log and the history have it in the end. Only the goroutine of the evaluation uses it.
// A nil Evaluation records nothing.
type Evaluation struct {
	active    *Active
	image     string
	began     time.Time
	phase     string // empty before the first and after the last
	steps     []Step
	resolving time.Duration
	leased    Leased
	attempts  int
}

// Step is a phase that an evaluation went through.
type Step struct {
	Phase string
	// Attempt counts the attempts, from one; 0 before the first.
	Attempt int
	// Offset is when the step began, counted from the beginning of the evaluation.
	Offset, Took time.Duration
	// Reason is what the step waited for last, if that is known.
	Reason string
}

// maxSteps is how many steps an evaluation records. Further ones are left out: an evaluation that is tried
// on many pods goes through the same phases again.
const maxSteps = 32

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
	e.active.move(e, phase)
	now := time.Since(e.began)
	if step := e.step(); step != nil {
		step.Took = now - step.Offset
	}
	e.phase = phase
	if phase != "" && len(e.steps) < maxSteps {
		e.steps = append(e.steps, Step{Phase: phase, Attempt: e.attempts, Offset: now})
	}
}

// step returns the step that the evaluation is in; nil if it is in none that is recorded.
func (e *Evaluation) step() *Step {
	if len(e.steps) == 0 {
		return nil
	}
	if last := &e.steps[len(e.steps)-1]; e.phase != "" && last.Phase == e.phase && last.Took == 0 {
		return last
	}
	return nil
}

// Names records the canonical name of the image. It shows from the next phase on.
func (e *Evaluation) Names(image string) {
	if e != nil {
		e.image = image
	}
}

// Waits records what the present phase waits for.
func (e *Evaluation) Waits(reason string) {
	if e == nil || reason == "" {
		return
	}
	e.WaitsNow(reason)
	if step := e.step(); step != nil {
		step.Reason = reason
	}
}

// WaitsNow has the reason shown while the present phase lasts. The step does not record it: most evaluations
// do not wait for it.
func (e *Evaluation) WaitsNow(reason string) {
	if e != nil {
		e.active.wait(e, e.phase, reason)
	}
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

// Began returns when the evaluation began.
func (e *Evaluation) Began() time.Time { return e.began }

// Steps returns the phases that the evaluation went through, in their order.
func (e *Evaluation) Steps() []Step { return e.steps }

// Resolved returns how long it took to resolve the image so far.
func (e *Evaluation) Resolved() time.Duration { return e.resolving }

// Leased returns the pod of the last attempt; it is empty if there was none.
func (e *Evaluation) Leased() Leased { return e.leased }

// Attempts returns the number of attempts.
func (e *Evaluation) Attempts() int { return e.attempts }
