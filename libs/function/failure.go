// SPDX-License-Identifier: Apache-2.0

package function

import (
	"errors"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

// Reason is the kind of a function's failure, such as a non-zero exit code.
type Reason = functionrunnerv1.FunctionFailure_Reason

// Values of Reason.
const (
	Exited         = functionrunnerv1.FunctionFailure_REASON_EXITED
	Signaled       = functionrunnerv1.FunctionFailure_REASON_SIGNALED
	NotStarted     = functionrunnerv1.FunctionFailure_REASON_NOT_STARTED
	OutputInvalid  = functionrunnerv1.FunctionFailure_REASON_OUTPUT_INVALID
	OutputTooLarge = functionrunnerv1.FunctionFailure_REASON_OUTPUT_TOO_LARGE
	TimedOut       = functionrunnerv1.FunctionFailure_REASON_TIMED_OUT
)

// Maximum sizes of the log and the results in the gRPC status detail of a failure, in bytes. They are small, because
// the server sends the detail in a header.
const (
	maxDetailStderr  = 4 << 10
	maxDetailResults = 8 << 10
)

// Failure is the error for a failed function. Its text is for users, in the same words that Porch uses. Its gRPC status
// detail contains the same information for programs.
type Failure struct {
	// Image is the function's image as its caller wrote it.
	Image    string
	Reason   Reason
	ExitCode int
	// Signal is the name of the signal that killed the process, or empty if it exited.
	Signal string
	// SignalCause is the cause of the signal, such as a lack of memory, and the remedy. It is empty if the cause is
	// unknown.
	SignalCause string
	// Status is the state of the exited process, such as "exit status 1".
	Status  string
	Stderr  string
	Results []resourcelist.Result

	cause    error
	message  string
	received *functionrunnerv1.FunctionFailure
}

// Error returns the text of the failure, for users.
func (f *Failure) Error() string { return f.message }

// Unwrap returns the error that made the function fail, such as an exceeded limit, invalid output, or a failure to
// start or stop the process. It may be nil.
func (f *Failure) Unwrap() error { return f.cause }

// Resolved adds the resolved name of the function's image to the gRPC status detail of err. The text of err still
// contains the name that the caller wrote. If the chain of err contains no [Failure], Resolved returns err unchanged.
func Resolved(err error, image string) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		return &resolvedFailure{error: err, failure: f, image: image}
	}
	return err
}

// resolvedFailure wraps an error whose chain contains failure. Its gRPC status detail contains the resolved name of
// the image.
type resolvedFailure struct {
	error
	failure *Failure
	image   string
}

func (f *resolvedFailure) Unwrap() error { return f.error }

// Detail implements rpcfault.Detailer.
func (f *resolvedFailure) Detail() proto.Message { return f.failure.detailFor(f.image) }

func (s *Service) fail(f Failure, reason Reason, cause error) error {
	f.Reason = reason
	f.cause = cause
	f.message = s.cfg.Wording(&f)
	class := fault.Internal
	if reason == OutputTooLarge || fault.Of(cause) == fault.Exhausted {
		class = fault.Exhausted
	}
	return fault.New(class, "%w", &f)
}

// Detail implements rpcfault.Detailer. It returns a FunctionFailure message for the gRPC status.
func (f *Failure) Detail() proto.Message { return f.detailFor(f.Image) }

func (f *Failure) detailFor(image string) proto.Message {
	if f.received != nil {
		detail := proto.CloneOf(f.received)
		detail.Image = image
		return detail
	}
	results := fittingResults(len(f.Results), func(i int) *functionrunnerv1.Result { return resultMessage(f.Results[i]) })
	return &functionrunnerv1.FunctionFailure{
		Image:          image,
		Reason:         f.Reason,
		ExitCode:       int32(max(f.ExitCode, 0)), //nolint:gosec // exit codes are 0 to 255
		Signal:         f.Signal,
		SignalCause:    f.SignalCause,
		Stderr:         validUTF8(excerpt.Middle(f.Stderr, maxDetailStderr)),
		Results:        results,
		ResultsOmitted: int32(len(f.Results) - len(results)), //nolint:gosec // resourcelist bounds them
	}
}

// validUTF8 replaces invalid UTF-8 in s, because protocol buffers reject it.
func validUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// fittingResults returns the first of n results, as many as fit into a gRPC status detail. It calls result(i) to get
// the result with index i.
func fittingResults(n int, result func(i int) *functionrunnerv1.Result) []*functionrunnerv1.Result {
	var out []*functionrunnerv1.Result
	left := maxDetailResults
	for i := range n {
		msg := result(i)
		left -= proto.Size(msg)
		if left < 0 {
			break
		}
		out = append(out, msg)
	}
	return out
}

func resultMessage(r resourcelist.Result) *functionrunnerv1.Result {
	msg := &functionrunnerv1.Result{
		Message: validUTF8(r.Message), Severity: validUTF8(r.Level()), Tags: map[string]string{},
	}
	if ref := r.ResourceRef; ref != nil {
		msg.ResourceRef = &functionrunnerv1.Result_ResourceRef{
			ApiVersion: validUTF8(ref.APIVersion), Kind: validUTF8(ref.Kind),
			Namespace: validUTF8(ref.Namespace), Name: validUTF8(ref.Name),
		}
	}
	if field := r.Field; field != nil {
		msg.Field = &functionrunnerv1.Result_Field{
			Path:         validUTF8(field.Path),
			CurrentValue: validUTF8(field.CurrentValue), ProposedValue: validUTF8(field.ProposedValue),
		}
	}
	if file := r.File; file != nil {
		index := int32(file.Index) //nolint:gosec // a position in a file
		msg.File = &functionrunnerv1.Result_File{Path: validUTF8(file.Path), Index: index}
	}
	for k, v := range r.Tags {
		msg.Tags[validUTF8(k)] = validUTF8(v)
	}
	return msg
}

// maxDetail is the maximum size of a gRPC status detail from another process, in bytes. We shorten larger details.
const maxDetail = 16 << 10

// Received returns the failure that another process sent. The arguments are its error message and its gRPC status
// detail. Received shortens a detail that is too large. The Results of the returned failure contain only messages and
// severities.
func Received(message string, detail *functionrunnerv1.FunctionFailure) *Failure {
	detail = boundDetail(detail)
	f := &Failure{
		Image:       detail.GetImage(),
		Reason:      detail.GetReason(),
		ExitCode:    int(detail.GetExitCode()),
		Signal:      excerpt.Middle(detail.GetSignal(), maxSignalBytes),
		SignalCause: excerpt.Middle(detail.GetSignalCause(), maxCauseBytes),
		Stderr:      detail.GetStderr(),
		message:     message,
		received:    detail,
	}
	for _, r := range detail.GetResults() {
		f.Results = append(f.Results, resourcelist.Result{Message: r.GetMessage(), Severity: r.GetSeverity()})
	}
	return f
}

// boundDetail returns the gRPC status detail if it fits into a header, and otherwise a shortened copy. The copy omits
// fields that this version does not know.
func boundDetail(detail *functionrunnerv1.FunctionFailure) *functionrunnerv1.FunctionFailure {
	if proto.Size(detail) <= maxDetail {
		return detail
	}
	results := detail.GetResults()
	kept := fittingResults(len(results), func(i int) *functionrunnerv1.Result { return results[i] })
	return &functionrunnerv1.FunctionFailure{
		Image:          excerpt.Middle(detail.GetImage(), maxImageBytes),
		Reason:         detail.GetReason(),
		ExitCode:       detail.GetExitCode(),
		Signal:         excerpt.Middle(detail.GetSignal(), maxSignalBytes),
		SignalCause:    excerpt.Middle(detail.GetSignalCause(), maxCauseBytes),
		Stderr:         excerpt.Middle(detail.GetStderr(), maxDetailStderr),
		Results:        kept,
		ResultsOmitted: detail.GetResultsOmitted() + int32(len(results)-len(kept)), //nolint:gosec // of one header
	}
}

// Maximum lengths of the signal's name and of its cause in a failure from another process, in bytes. No signal and no
// cause is longer.
const (
	maxSignalBytes = 64
	maxCauseBytes  = 256
)
