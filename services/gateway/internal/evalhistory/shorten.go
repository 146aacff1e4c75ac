// SPDX-License-Identifier: Apache-2.0

package evalhistory

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// maxNameBytes limits names of an evaluation, maxReasonBytes its reason, and maxPhaseBytes the reason of each
	// phase. A shortened text also contains a note about the omitted part.
	maxNameBytes   = 256
	maxReasonBytes = 1 << 10
	maxPhaseBytes  = 200
)

// shortenTexts limits the texts of an evaluation, because callers choose some of the texts.
func shortenTexts(e *gatewayv1.Evaluation) {
	for _, name := range []*string{&e.TraceId, &e.Image, &e.Resolved, &e.Evaluator, &e.Code, &e.Severity, &e.Pod} {
		*name = validText(*name, maxNameBytes)
	}
	e.Reason = validText(e.Reason, maxReasonBytes)
	for _, p := range e.GetPhases() {
		p.Reason = validText(p.Reason, maxPhaseBytes)
	}
}

// validText returns s, shortened to limit bytes, as valid UTF-8. A protobuf message cannot contain other text.
func validText(s string, limit int) string {
	return strings.ToValidUTF8(excerpt.Middle(s, limit), "�")
}

// Name returns the shortened name of an image.
func Name(s string) string { return validText(s, maxNameBytes) }

// Reason returns the shortened reason of a wait.
func Reason(s string) string { return validText(s, maxPhaseBytes) }
