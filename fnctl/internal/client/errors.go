// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/result"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// CallError reports an evaluation that failed for a reason outside of the function, such as an unreachable gateway.
type CallError struct {
	// Problem is the reason.
	Problem string
	// Advice is the remedy. It may be empty.
	Advice string
	// Lasting is true if the evaluation would fail again in the same way, so that a retry is useless.
	Lasting bool
	// Trace is the trace id in the gateway's log. It is set only if the gateway, or a server behind the gateway, failed.
	Trace string
	Cause error
}

func (e *CallError) Error() string {
	if e.Advice == "" {
		return e.Problem
	}
	return e.Problem + "; " + e.Advice
}

func (e *CallError) Unwrap() error { return e.Cause }

// explain converts the RPC error of an evaluation to a [pipeline.FunctionError], or to a [CallError] for users.
func (g *Gateway) explain(ctx context.Context, req pipeline.Request, err error) error {
	// The RPC error does not show whether the user canceled the call. Only the context shows it.
	if errors.Is(ctx.Err(), context.Canceled) {
		return &CallError{Problem: "interrupted; nothing was written", Cause: ctx.Err()}
	}
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok {
		cerr = connect.NewError(connect.CodeUnknown, err)
	}
	failure := detailOf[*functionrunnerv1.FunctionFailure](cerr)
	// An error with failure details means that the function ran and failed. A runner that sends no failure details reports
	// such a failure as an internal error.
	if failure != nil || (cerr.Code() == connect.CodeInternal && connect.IsWireError(cerr)) {
		return &pipeline.FunctionError{
			Image: req.Image, Message: cerr.Message(), Failure: failure, Results: result.FromFailure(failure),
		}
	}
	problem, advice := g.explainText(req, cerr)
	call := &CallError{Problem: problem, Advice: advice, Lasting: lasting(cerr), Cause: err}
	if _, _, isImage := explainImage(req.Image, cerr.Message(), g.local); !isImage && !g.local && systemFailed(cerr) {
		call.Trace = trace.SpanContextFromContext(ctx).TraceID().String()
	}
	g.suggestImage(ctx, req.Image, call)
	return call
}

// detailOf returns the first detail of type T in a server's error, or nil if the error contains none.
func detailOf[T proto.Message](cerr *connect.Error) (found T) {
	for _, detail := range cerr.Details() {
		if message, err := detail.Value(); err == nil { // Value fails for message types of newer gateways
			if found, ok := message.(T); ok {
				return found
			}
		}
	}
	return found
}

// lasting reports whether a retry of the call would fail in the same way.
func lasting(cerr *connect.Error) bool {
	codes := []connect.Code{connect.CodeNotFound, connect.CodeFailedPrecondition, connect.CodeInvalidArgument}
	return slices.Contains(codes, cerr.Code()) && connect.IsWireError(cerr)
}

// systemFailed reports whether the gateway or a server behind it failed, so that its log contains the reason.
func systemFailed(cerr *connect.Error) bool {
	codes := []connect.Code{
		connect.CodeUnknown, connect.CodeInternal, connect.CodeUnavailable, connect.CodeDataLoss, connect.CodeAborted,
	}
	return slices.Contains(codes, cerr.Code()) && connect.IsWireError(cerr)
}

// explainText returns the reason and the remedy of a failed call, as texts for users.
func (g *Gateway) explainText(req pipeline.Request, cerr *connect.Error) (problem, advice string) {
	a, ok := g.texts[cerr.Code()]
	if !ok {
		a = otherAccount
	}
	problem, advice, isImage := explainImage(req.Image, cerr.Message(), g.local)
	switch {
	case brokenConnection(cerr) && strings.Contains(cerr.Message(), "HTTP response to HTTPS client"):
		a = account{"the gateway at {address} does not speak TLS", "give its address as http://, or without a scheme"}
	case brokenConnection(cerr):
		a = g.unreachable
	case isImage:
		return problem, advice + g.filler(req, cerr).Replace("{retry}")
	case cerr.Code() == connect.CodeResourceExhausted && tooLarge.MatchString(cerr.Message()):
		a = sizeAccount
		if g.local {
			a = localSizeAccount
		}
	case explainsTimeout(cerr):
		a = timedOut
	}
	if strings.Contains(cerr.Message(), "try again") && strings.Contains(a.advice, "try again") {
		a.advice = "" // the message already contains this advice
	}
	fill := g.filler(req, cerr)
	return fill.Replace(a.problem), fill.Replace(a.advice)
}

// filler returns a replacer for error templates. It replaces placeholders such as {image} by values of the failed call.
func (g *Gateway) filler(req pipeline.Request, cerr *connect.Error) *strings.Replacer {
	return strings.NewReplacer(
		"{image}", strconv.Quote(req.Image), "{address}", g.address,
		"{code}", cerr.Code().String(), "{message}", passedOn.ReplaceAllString(cerr.Message(), ""),
		"{retry}", retryHint(cerr),
		"{size}", strconv.Itoa(len(req.ResourceList)), "{limit}", strconv.Itoa(g.limit))
}

// retryHint returns the retry delay that the server sent, such as " (in 5s)", or an empty string.
func retryHint(cerr *connect.Error) string {
	if delay := detailOf[*errdetails.RetryInfo](cerr).GetRetryDelay().AsDuration(); delay > 0 {
		return fmt.Sprintf(" (in %v)", delay.Round(time.Second))
	}
	return ""
}

// brokenConnection reports whether the connection to the gateway failed. A server that speaks another protocol may
// reset the stream, which appears as a canceled call. A canceled call therefore counts as a failed connection, and
// callers must first check for a cancellation by the user.
func brokenConnection(cerr *connect.Error) bool {
	codes := []connect.Code{connect.CodeUnavailable, connect.CodeCanceled, connect.CodeUnknown}
	return slices.Contains(codes, cerr.Code()) && !connect.IsWireError(cerr)
}

// explainsTimeout reports whether a timeout error explains the function's wait. Only errors of our gateway explain it.
func explainsTimeout(cerr *connect.Error) bool {
	return cerr.Code() == connect.CodeDeadlineExceeded && connect.IsWireError(cerr) &&
		cerr.Message() != context.DeadlineExceeded.Error()
}

// WaitedFor adds the reason for a function's wait to a timeout error. The argument what is the last known reason. If
// the error is not a timeout, or if it already contains the gateway's own reason, WaitedFor returns it unchanged.
func WaitedFor(err error, what string) error {
	call, ok := errors.AsType[*CallError](err)
	if !ok || what == "" || connect.CodeOf(call.Cause) != connect.CodeDeadlineExceeded {
		return err
	}
	if cause, ok := errors.AsType[*connect.Error](call.Cause); ok && explainsTimeout(cause) {
		return err
	}
	waited := *call
	waited.Problem += ": " + what
	waited.Advice = timedOut.advice
	return &waited
}
