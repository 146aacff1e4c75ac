// SPDX-License-Identifier: Apache-2.0

package evalhandler

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/function"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// historyRecord returns the record of an evaluation for the history. All callers can read the history, so the
// record contains no parts of the resource lists and no output of the function.
func (s sample) historyRecord(ctx context.Context) *gatewayv1.Evaluation {
	e := &gatewayv1.Evaluation{
		Image: s.given, Resolved: s.image.String(), Evaluator: s.evaluator,
		Code: codeOf(s.err), Fault: s.party, Reason: failureReason(s.err, s.given), Severity: worstSeverity(s),
		StartTime: timestamppb.New(s.measured.Began()), Duration: durationpb.New(s.took),
		RequestBytes: int64(s.requestBytes), ResponseBytes: int64(s.responseBytes),
		ColdStart: s.measured.Leased().ColdStart, Attempts: int32(s.measured.Attempts()), //nolint:gosec // a few
		Pod: s.measured.Leased().Pod,
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		e.TraceId = span.TraceID().String()
	}
	for _, step := range s.measured.Steps() {
		e.Phases = append(e.Phases, &gatewayv1.EvaluationPhase{
			Name: step.Phase, Attempt: int32(step.Attempt), //nolint:gosec // a few
			Offset: durationpb.New(step.Offset), Duration: durationpb.New(step.Took), Reason: step.Reason,
		})
	}
	return e
}

// rejectionRecord returns the history record of a request that was rejected before it was read completely.
func rejectionRecord(err error) *gatewayv1.Evaluation {
	return &gatewayv1.Evaluation{
		Code: codeOf(err), Fault: partyOf(err, ""), Reason: failureReason(err, ""), StartTime: timestamppb.Now(),
	}
}

// failureReason returns the text that the history shows for the error of an evaluation, next to the image. All callers
// can read the history, so the text contains no output of the function and no parts of the resource list. The argument
// image is the image as the caller wrote it, or empty if the request was rejected.
func failureReason(err error, image string) string {
	if err == nil {
		return ""
	}
	if text, ok := describeListError(err); ok {
		return text
	}
	failure, ok := errors.AsType[*function.Failure](err)
	switch {
	case ok && failure.Reason != function.NotStarted:
		return describeFailure(failure)
	case !ok && fault.Of(err) == fault.Internal:
		return "internal error: the gateway's log has it"
	default:
		return function.TrimPrefixes(err.Error(), image)
	}
}

// describeListError returns a description of an error that contains an [*evaluation.ListError]. The description
// contains no parts of the resource list. For all other errors, ok is false.
func describeListError(err error) (text string, ok bool) {
	if _, ok := errors.AsType[*evaluation.ListError](err); !ok {
		return "", false
	}
	switch fault.Of(err) {
	case fault.Invalid:
		return "the resource list is not valid", true
	case fault.Internal:
		return "the pod's answer is not a valid resource list", true
	default: // the caller's context has ended
		return "", false
	}
}

func describeFailure(f *function.Failure) string {
	switch f.Reason {
	case function.Exited:
		return fmt.Sprintf("the function failed with exit code %d", f.ExitCode)
	case function.Signaled:
		return fmt.Sprintf("the function was ended by the signal %q", f.Signal)
	case function.OutputInvalid:
		return "the function's output is not a valid resource list"
	case function.OutputTooLarge:
		return "the function wrote more output than it may"
	case function.TimedOut:
		return "the function ran out of time"
	default:
		return "the function failed"
	}
}

// partyOf returns the party that caused the failure err, for alerts: "function", "caller" or "system". It is empty if
// err is nil. The argument label is the image's metric label. An image without its own label has probably never run. If
// such an image cannot be pulled, the caller has probably invented its name, and partyOf returns "caller".
func partyOf(err error, label string) string {
	if err == nil {
		return ""
	}
	_, dropped := errors.AsType[*droppedError](err)
	if hasRun(err) && !dropped {
		return "function"
	}
	switch fault.Of(err) {
	case fault.Invalid, fault.NotFound, fault.Denied, fault.Canceled, fault.Unimplemented:
		return "caller"
	case fault.Precondition:
		if label == imagename.OtherImages {
			return "caller"
		}
	default:
	}
	return "system"
}
