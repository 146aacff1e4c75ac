// SPDX-License-Identifier: Apache-2.0

package measure

import "time"

// Evaluation records the progress of an evaluation, for metrics, spans, log and history. The front door creates it and
// evaluators fill it in. Only the goroutine of the evaluation may use it. A nil *Evaluation records nothing.
type Evaluation struct {
	active    *Active
	image     string
	began     time.Time
	phase     string // empty before the first phase and after the last
	steps     []Step
	resolving time.Duration
	leased    Leased
	attempts  int
}

// Step is a phase of an evaluation.
type Step struct {
	Phase string
	// Attempt is the number of the attempt, from 1. It is 0 before the first attempt.
	Attempt int
	// Offset is the time between the beginning of the evaluation and the beginning of the step.
	Offset, Took time.Duration
	// Reason is the last reason of a wait in the step. It is empty if no reason is known.
	Reason string
}

// maxSteps is the maximum number of recorded steps. An evaluation that is retried on many pods repeats the same phases.
const maxSteps = 32

// Leased is the pod or the sandbox of an evaluation. It is empty for a local binary.
type Leased struct {
	Pod, Namespace string
	// Image is the reference with the digest.
	Image string
	// ColdStart is true if the pod was started for the evaluation, or was still starting.
	ColdStart bool
}

// Enter begins a phase.
func (e *Evaluation) Enter(phase string) {
	if e == nil || e.phase == phase {
		return
	}
	e.active.changePhase(e, phase)
	now := time.Since(e.began)
	if step := e.currentStep(); step != nil {
		step.Took = now - step.Offset
	}
	e.phase = phase
	if phase != "" && len(e.steps) < maxSteps {
		e.steps = append(e.steps, Step{Phase: phase, Attempt: e.attempts, Offset: now})
	}
}

// currentStep returns the current step, or nil if it is not recorded.
func (e *Evaluation) currentStep() *Step {
	if len(e.steps) == 0 {
		return nil
	}
	if last := &e.steps[len(e.steps)-1]; e.phase != "" && last.Phase == e.phase && last.Took == 0 {
		return last
	}
	return nil
}

// Names records the canonical name of the image, which is shown from the next phase on.
func (e *Evaluation) Names(image string) {
	if e != nil {
		e.image = image
	}
}

// Waits records the reason of a wait in the current phase.
func (e *Evaluation) Waits(reason string) {
	if e == nil || reason == "" {
		return
	}
	e.WaitsNow(reason)
	if step := e.currentStep(); step != nil {
		step.Reason = reason
	}
}

// WaitsNow shows the reason of a wait during the current phase. The step does not record it, because most evaluations
// do not wait for it.
func (e *Evaluation) WaitsNow(reason string) {
	if e != nil {
		e.active.recordWait(e, e.phase, reason)
	}
}

// End ends the evaluation.
func (e *Evaluation) End() { e.Enter("") }

// Resolving adds d to the time of resolving the image. The front door resolves the name, and the pod-manager resolves
// the digest with each lease.
func (e *Evaluation) Resolving(d time.Duration) {
	if e != nil {
		e.resolving += d
	}
}

// Attempt begins an attempt: to get a pod and to evaluate there, or to evaluate in a local process.
func (e *Evaluation) Attempt() {
	if e != nil {
		e.attempts++
	}
}

// On records the pod or the sandbox of the attempt. Cold starts of earlier attempts count.
func (e *Evaluation) On(leased Leased) {
	if e != nil {
		leased.ColdStart = leased.ColdStart || e.leased.ColdStart
		e.leased = leased
	}
}

// Began returns the time at which the evaluation began.
func (e *Evaluation) Began() time.Time { return e.began }

// Steps returns the recorded steps in order.
func (e *Evaluation) Steps() []Step { return e.steps }

// Resolved returns the time of resolving the image so far.
func (e *Evaluation) Resolved() time.Duration { return e.resolving }

// Leased returns the pod of the last attempt. It is empty without an attempt.
func (e *Evaluation) Leased() Leased { return e.leased }

// Attempts returns the number of attempts.
func (e *Evaluation) Attempts() int { return e.attempts }
