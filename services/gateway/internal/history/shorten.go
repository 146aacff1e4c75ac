// SPDX-License-Identifier: Apache-2.0

package history

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// maxNameBytes and maxReasonBytes bound the texts of an evaluation, and maxPhaseBytes the reason of a
	// phase. A note about what is left out comes on top.
	maxNameBytes   = 256
	maxReasonBytes = 1 << 10
	maxPhaseBytes  = 200
)

// shorten bounds the texts of an evaluation. Callers choose some of them.
func shorten(e *gatewayv1.Evaluation) {
	for _, name := range []*string{&e.TraceId, &e.Image, &e.Resolved, &e.Evaluator, &e.Code, &e.Severity, &e.Pod} {
		*name = text(*name, maxNameBytes)
	}
	e.Reason = text(e.Reason, maxReasonBytes)
	for _, p := range e.GetPhases() {
		p.Reason = text(p.Reason, maxPhaseBytes)
	}
}

// text returns s in a form that a message may have.
func text(s string, limit int) string { return strings.ToValidUTF8(excerpt.Middle(s, limit), "�") }

// Name returns the name of an image in the length in which it is shown.
func Name(s string) string { return text(s, maxNameBytes) }

// Reason returns what an evaluation waits for in the length in which it is shown.
func Reason(s string) string { return text(s, maxPhaseBytes) }
