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

// Reason is the way in which a function failed.
type Reason = functionrunnerv1.FunctionFailure_Reason

// The reasons.
const (
	Exited         = functionrunnerv1.FunctionFailure_REASON_EXITED
	Signaled       = functionrunnerv1.FunctionFailure_REASON_SIGNALED
	NotStarted     = functionrunnerv1.FunctionFailure_REASON_NOT_STARTED
	OutputInvalid  = functionrunnerv1.FunctionFailure_REASON_OUTPUT_INVALID
	OutputTooLarge = functionrunnerv1.FunctionFailure_REASON_OUTPUT_TOO_LARGE
	TimedOut       = functionrunnerv1.FunctionFailure_REASON_TIMED_OUT
)

// Budgets of a status detail, in bytes: it travels in a header.
const (
	maxDetailStderr  = 4 << 10
	maxDetailResults = 8 << 10
)

// Failure is a function that failed. It is an error whose text is Porch's, and its
// detail has the same for programs.
type Failure struct {
	// Image is the function's image as its caller wrote it.
	Image    string
	Reason   Reason
	ExitCode int
	// Signal is the name of the signal that ended the process, or empty.
	Signal string
	// Status is how the process ended, such as "exit status 1".
	Status  string
	Stderr  string
	Results []resourcelist.Result

	cause    error
	message  string
	received *functionrunnerv1.FunctionFailure
}

// Error returns the failure in words.
func (f *Failure) Error() string { return f.message }

// Unwrap returns why the output does not parse, which limit was passed, or why the
// process did not start or was stopped.
func (f *Failure) Unwrap() error { return f.cause }

// Resolved adds a detail with the resolved image name to err, if there is a failure in its chain.
// The text keeps the name that the caller wrote.
func Resolved(err error, image string) error {
	if f, ok := errors.AsType[*Failure](err); ok {
		return &resolvedFailure{error: err, failure: f, image: image}
	}
	return err
}

// resolvedFailure is an error with a failure in its chain whose image was resolved.
type resolvedFailure struct {
	error
	failure *Failure
	image   string
}

func (f *resolvedFailure) Unwrap() error { return f.error }

// Detail implements rpcfault.Detailer.
func (f *resolvedFailure) Detail() proto.Message { return f.failure.detail(f.image) }

// fail completes a failure and classifies it.
func (s *Service) fail(f Failure, reason Reason, cause error) error {
	f.Reason, f.cause = reason, cause
	f.message = s.cfg.Wording(&f)
	class := fault.Internal
	if reason == OutputTooLarge || fault.Of(cause) == fault.Exhausted {
		class = fault.Exhausted
	}
	return fault.New(class, "%w", &f)
}

// Detail implements rpcfault.Detailer: it returns a FunctionFailure.
func (f *Failure) Detail() proto.Message { return f.detail(f.Image) }

// detail returns the detail of a failure of image.
func (f *Failure) detail(image string) proto.Message {
	if f.received != nil {
		detail := proto.CloneOf(f.received)
		detail.Image = image
		return detail
	}
	results := fitting(len(f.Results), func(i int) *functionrunnerv1.Result { return message(f.Results[i]) })
	return &functionrunnerv1.FunctionFailure{
		Image:          image,
		Reason:         f.Reason,
		ExitCode:       int32(max(f.ExitCode, 0)), //nolint:gosec // exit codes are 0 to 255
		Signal:         f.Signal,
		Stderr:         valid(excerpt.Middle(f.Stderr, maxDetailStderr)),
		Results:        results,
		ResultsOmitted: int32(len(f.Results) - len(results)), //nolint:gosec // resourcelist bounds them
	}
}

// valid returns s as protocol buffers and headers need it, in UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// fitting returns the first of n results that fit into a detail.
func fitting(n int, result func(i int) *functionrunnerv1.Result) []*functionrunnerv1.Result {
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

// message returns a result as a message.
func message(r resourcelist.Result) *functionrunnerv1.Result {
	msg := &functionrunnerv1.Result{Message: valid(r.Message), Severity: valid(r.Level()), Tags: map[string]string{}}
	if ref := r.ResourceRef; ref != nil {
		msg.ResourceRef = &functionrunnerv1.Result_ResourceRef{
			ApiVersion: valid(ref.APIVersion), Kind: valid(ref.Kind), Namespace: valid(ref.Namespace), Name: valid(ref.Name),
		}
	}
	if field := r.Field; field != nil {
		msg.Field = &functionrunnerv1.Result_Field{
			Path: valid(field.Path), CurrentValue: valid(field.CurrentValue), ProposedValue: valid(field.ProposedValue),
		}
	}
	if file := r.File; file != nil {
		index := int32(file.Index) //nolint:gosec // a position in a file
		msg.File = &functionrunnerv1.Result_File{Path: valid(file.Path), Index: index}
	}
	for k, v := range r.Tags {
		msg.Tags[valid(k)] = valid(v)
	}
	return msg
}

// maxDetail is how many bytes of another process's detail are passed on.
const maxDetail = 16 << 10

// Received returns a failure that another process put into words and sent with
// detail, which is passed on as it is unless it is too large. Of its results the failure
// has texts and severities.
func Received(message string, detail *functionrunnerv1.FunctionFailure) *Failure {
	detail = bounded(detail)
	f := &Failure{
		Image:    detail.GetImage(),
		Reason:   detail.GetReason(),
		ExitCode: int(detail.GetExitCode()),
		Signal:   excerpt.Middle(detail.GetSignal(), maxSignalBytes),
		Stderr:   detail.GetStderr(),
		message:  message,
		received: detail,
	}
	for _, r := range detail.GetResults() {
		f.Results = append(f.Results, resourcelist.Result{Message: r.GetMessage(), Severity: r.GetSeverity()})
	}
	return f
}

// bounded returns a detail if it fits into a header, else what fits of its known fields.
func bounded(detail *functionrunnerv1.FunctionFailure) *functionrunnerv1.FunctionFailure {
	if proto.Size(detail) <= maxDetail {
		return detail
	}
	results := detail.GetResults()
	kept := fitting(len(results), func(i int) *functionrunnerv1.Result { return results[i] })
	return &functionrunnerv1.FunctionFailure{
		Image:          excerpt.Middle(detail.GetImage(), maxImageBytes),
		Reason:         detail.GetReason(),
		ExitCode:       detail.GetExitCode(),
		Signal:         excerpt.Middle(detail.GetSignal(), maxSignalBytes),
		Stderr:         excerpt.Middle(detail.GetStderr(), maxDetailStderr),
		Results:        kept,
		ResultsOmitted: detail.GetResultsOmitted() + int32(len(results)-len(kept)), //nolint:gosec // of one header
	}
}

// maxSignalBytes is more than the name of any signal has.
const maxSignalBytes = 64
