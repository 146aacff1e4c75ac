// SPDX-License-Identifier: Apache-2.0

package evalmetrics

import "time"

// Evaluation records the progress of an evaluation, for metrics, spans, log and history. The handler creates the
// record, and evaluators add to it. Only the goroutine of the evaluation may use it. A nil *Evaluation records
// nothing.
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

// Step is a phase that an evaluation has entered, with its times.
type Step struct {
	Phase string
	// Attempt is the number of the attempt, from 1. It is 0 before the first attempt.
	Attempt int
	// Offset is the time between the beginning of the evaluation and the beginning of the step. Took is the duration
	// of the step.
	Offset, Took time.Duration
	// Reason is the latest reason why the evaluation waited in the step. It is empty if no reason is known.
	Reason string
}

// maxSteps is the maximum number of recorded steps. The number is limited because each retry on another pod repeats
// the same phases.
const maxSteps = 32

// Leased is the pod or the sandbox of an evaluation. It is empty for a local binary.
type Leased struct {
	Pod, Namespace string
	// Image is the image's reference with its digest.
	Image string
	// ColdStart is true if the pod was started for the evaluation, or was still starting.
	ColdStart bool
}

// Enter ends the current phase and begins another phase. It does nothing if the evaluation is already in that phase.
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

// currentStep returns the step of the current phase. It returns nil before the first phase, after the last phase, and
// if maxSteps are already recorded.
func (e *Evaluation) currentStep() *Step {
	if len(e.steps) == 0 {
		return nil
	}
	if last := &e.steps[len(e.steps)-1]; e.phase != "" && last.Phase == e.phase && last.Took == 0 {
		return last
	}
	return nil
}

// Names records the canonical name of the image. Waits show this name from the next phase on.
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

// WaitsNow shows the reason of a wait only while the current phase lasts. The step does not record the reason,
// because most evaluations pass the phase without waiting.
func (e *Evaluation) WaitsNow(reason string) {
	if e != nil {
		e.active.recordWait(e, e.phase, reason)
	}
}

// End ends the evaluation.
func (e *Evaluation) End() { e.Enter("") }

// Resolving adds d to the time of resolving the image. The gateway resolves the name, and the pod-manager resolves
// the digest with each lease.
func (e *Evaluation) Resolving(d time.Duration) {
	if e != nil {
		e.resolving += d
	}
}

// Attempt counts a new attempt. An attempt leases a pod and evaluates there, or evaluates in a local process.
func (e *Evaluation) Attempt() {
	if e != nil {
		e.attempts++
	}
}

// On records the pod or the sandbox of the attempt. ColdStart stays true if an earlier attempt had a cold start.
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

// Resolved returns the time that resolving the image has needed so far.
func (e *Evaluation) Resolved() time.Duration { return e.resolving }

// Leased returns the pod or the sandbox of the last attempt. It is empty before the first attempt.
func (e *Evaluation) Leased() Leased { return e.leased }

// Attempts returns the number of attempts.
func (e *Evaluation) Attempts() int { return e.attempts }
