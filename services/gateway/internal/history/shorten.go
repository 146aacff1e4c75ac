// SPDX-License-Identifier: Apache-2.0

package history

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// maxNameBytes and maxReasonBytes limit the texts of an evaluation, and maxPhaseBytes limits the reason of a phase. A
	// note about omitted text is added to them.
	maxNameBytes   = 256
	maxReasonBytes = 1 << 10
	maxPhaseBytes  = 200
)

// shortenTexts limits the texts of an evaluation. Callers choose some of the texts.
func shortenTexts(e *gatewayv1.Evaluation) {
	for _, name := range []*string{&e.TraceId, &e.Image, &e.Resolved, &e.Evaluator, &e.Code, &e.Severity, &e.Pod} {
		*name = validText(*name, maxNameBytes)
	}
	e.Reason = validText(e.Reason, maxReasonBytes)
	for _, p := range e.GetPhases() {
		p.Reason = validText(p.Reason, maxPhaseBytes)
	}
}

// validText returns s as valid UTF-8 for a message.
func validText(s string, limit int) string {
	return strings.ToValidUTF8(excerpt.Middle(s, limit), "�")
}

// Name returns the shortened name of an image.
func Name(s string) string { return validText(s, maxNameBytes) }

// Reason returns the shortened reason of a wait.
func Reason(s string) string { return validText(s, maxPhaseBytes) }
