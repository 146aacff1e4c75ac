// SPDX-License-Identifier: Apache-2.0

package evalmetrics

import (
	"context"
	"time"
)

// Evaluation records the progress of an evaluation, for metrics, trace, log and history. The request handler creates
// it, and evaluators add to it. It is not safe for concurrent use.
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

// Step is a phase of an evaluation, such as "queue", with its start time and its duration.
type Step struct {
	Phase string
	// Attempt is the number of the attempt to run the function, starting with 1. It is 0 before the first attempt.
	Attempt int
	// Offset is the time from the start of the evaluation to the start of the step. Took is the step's duration.
	Offset, Took time.Duration
	// Reason is the latest reason why the evaluation waited in the step. It is empty if no reason is known.
	Reason string
}

// maxSteps is the maximum number of recorded steps of an evaluation. A limit is needed because each retry on
// another pod passes through the same phases again.
const maxSteps = 32

// Leased is the pod or the sandbox in which an evaluation ran. It is empty for a local binary.
type Leased struct {
	Pod, Namespace string
	// Image is the image as reference@digest.
	Image string
	// ColdStart is true if the evaluation waited for the start of a new pod.
	ColdStart bool
}

// Enter ends the current phase and begins the given phase, unless the evaluation is already in that phase.
func (e *Evaluation) Enter(phase string) {
	if e.phase == phase {
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

// currentStep returns the recorded step of the current phase. It returns nil if the evaluation is in no phase. It also
// returns nil if the phase is not recorded, because maxSteps earlier steps are recorded.
func (e *Evaluation) currentStep() *Step {
	if len(e.steps) == 0 {
		return nil
	}
	if last := &e.steps[len(e.steps)-1]; e.phase != "" && last.Phase == e.phase && last.Took == 0 {
		return last
	}
	return nil
}

// Names records the canonical name of the image. The list of waiting evaluations shows this name as soon as the next
// phase begins.
func (e *Evaluation) Names(image string) { e.image = image }

// Waits records why the evaluation waits in its current phase, for the list of waiting evaluations and the history.
func (e *Evaluation) Waits(reason string) {
	if reason == "" {
		return
	}
	e.WaitsNow(reason)
	if step := e.currentStep(); step != nil {
		step.Reason = reason
	}
}

// WaitsNow is like [Evaluation.Waits], but does not add the reason to the history. Call it in a phase that most
// evaluations pass without a wait. Otherwise the history would show waits that did not occur.
func (e *Evaluation) WaitsNow(reason string) { e.active.recordWait(e, e.phase, reason) }

// End ends the evaluation and its current phase.
func (e *Evaluation) End() { e.Enter("") }

// Took records the duration of a phase in metrics. It ignores names that are not in evalphase.Names.
func (e *Evaluation) Took(ctx context.Context, name string, d time.Duration) {
	if p, ok := e.active.phases[name]; ok {
		e.active.seconds.Record(ctx, d.Seconds(), p.label)
	}
}

// Resolving adds d to the time that the evaluation has spent on resolving the image. Several steps add their times: the
// gateway resolves the name to a tag, and the pod-manager resolves the tag to a digest for each lease.
func (e *Evaluation) Resolving(d time.Duration) { e.resolving += d }

// Attempt counts a new attempt to run the function, in a pod or in a local process.
func (e *Evaluation) Attempt() { e.attempts++ }

// On records the pod or the sandbox of an attempt. ColdStart stays true if it was true in an earlier attempt.
func (e *Evaluation) On(leased Leased) {
	leased.ColdStart = leased.ColdStart || e.leased.ColdStart
	e.leased = leased
}

// Began returns the time when the evaluation began.
func (e *Evaluation) Began() time.Time { return e.began }

// Steps returns the phases of the evaluation so far, in order.
func (e *Evaluation) Steps() []Step { return e.steps }

// Resolved returns the time that the evaluation has spent on resolving the image.
func (e *Evaluation) Resolved() time.Duration { return e.resolving }

// Leased returns the pod or the sandbox of the last attempt. It is empty before the first attempt.
func (e *Evaluation) Leased() Leased { return e.leased }

// Attempts returns the number of attempts to run the function so far.
func (e *Evaluation) Attempts() int { return e.attempts }
