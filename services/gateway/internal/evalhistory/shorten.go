// SPDX-License-Identifier: Apache-2.0

package evalhistory

import (
	"strings"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
)

const (
	// maxNameBytes, maxReasonBytes and maxPhaseBytes limit the texts of a stored evaluation. A note that replaces the
	// omitted part of a text is not counted.
	maxNameBytes   = 256
	maxReasonBytes = 1 << 10
	maxPhaseBytes  = 200
)

// shortenTexts shortens the texts of an evaluation, because callers choose some of them, and long texts would use
// much memory.
func shortenTexts(e *gatewayv1.Evaluation) {
	for _, name := range []*string{&e.TraceId, &e.Image, &e.Resolved, &e.Evaluator, &e.Code, &e.Severity, &e.Pod} {
		*name = validText(*name, maxNameBytes)
	}
	e.Reason = validText(e.Reason, maxReasonBytes)
	for _, p := range e.GetPhases() {
		p.Reason = validText(p.Reason, maxPhaseBytes)
	}
}

// validText shortens s to limit bytes. It replaces bytes that are not valid UTF-8, because the protobuf encoder rejects
// them.
func validText(s string, limit int) string {
	return strings.ToValidUTF8(excerpt.Middle(s, limit), "�")
}

// Name shortens the name of an image to the length that the status page shows.
func Name(s string) string { return validText(s, maxNameBytes) }

// Reason shortens the reason of a wait to the length that the status page shows.
func Reason(s string) string { return validText(s, maxPhaseBytes) }
