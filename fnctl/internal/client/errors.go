// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// FunctionError reports a function that ran and failed.
type FunctionError struct {
	Image string
	// Message is the gateway's description of the failure.
	Message string
	// Failure has the details; nil if the gateway sent none.
	Failure *functionrunnerv1.FunctionFailure
}

func (e *FunctionError) Error() string { return e.Message }

// CallError reports an evaluation that failed for another reason than the function.
type CallError struct {
	// Problem describes what went wrong.
	Problem string
	// Advice describes what to do about it.
	Advice string
	// Lasting reports whether the package asks for something that cannot be done, so that trying
	// again does not help.
	Lasting bool
	// Trace is the id of the evaluation's trace, if the gateway failed and its log may say more.
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

// explain turns an error of the RPC into one that users understand.
func (g *Gateway) explain(ctx context.Context, req pipeline.Request, err error) error {
	// The context knows better than the connection why the call ended.
	if errors.Is(ctx.Err(), context.Canceled) {
		return &CallError{Problem: "interrupted; nothing was written", Cause: ctx.Err()}
	}
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok {
		cerr = connect.NewError(connect.CodeUnknown, err)
	}
	failure := failureOf(cerr)
	// Runners that send no details report functions that fail as internal errors.
	if failure != nil || cerr.Code() == connect.CodeInternal && connect.IsWireError(cerr) {
		return &FunctionError{Image: req.Image, Message: cerr.Message(), Failure: failure}
	}
	problem, advice := g.account(req, cerr)
	call := &CallError{Problem: problem, Advice: advice, Lasting: lasting(cerr), Cause: err}
	if _, _, isImage := explainImage(req.Image, cerr.Message(), g.local); !isImage && !g.local && systemFailed(cerr) {
		call.Trace, _ = ctx.Value(traceKey{}).(string)
	}
	return call
}

// failureOf returns the details of a failed function; nil if there are none.
func failureOf(cerr *connect.Error) *functionrunnerv1.FunctionFailure {
	for _, detail := range cerr.Details() {
		msg, err := detail.Value()
		if err != nil {
			continue // of a type that this version does not know
		}
		if failure, ok := msg.(*functionrunnerv1.FunctionFailure); ok {
			return failure
		}
	}
	return nil
}

// lasting reports whether the answer will be the same next time.
func lasting(cerr *connect.Error) bool {
	switch cerr.Code() {
	case connect.CodeNotFound, connect.CodeFailedPrecondition, connect.CodeInvalidArgument:
		return connect.IsWireError(cerr)
	default:
		return false
	}
}

// systemFailed reports whether the gateway, or something that it needs, is at fault, rather than the caller.
func systemFailed(cerr *connect.Error) bool {
	switch cerr.Code() {
	case connect.CodeUnknown, connect.CodeInternal, connect.CodeUnavailable, connect.CodeDataLoss, connect.CodeAborted:
		return connect.IsWireError(cerr)
	default:
		return false
	}
}

// account describes what went wrong and what to do about it.
func (g *Gateway) account(req pipeline.Request, cerr *connect.Error) (problem, advice string) {
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
		a.advice = "" // the gateway says so already
	}
	fill := g.filler(req, cerr)
	return fill.Replace(a.problem), fill.Replace(a.advice)
}

// filler fills in the templates of accounts.
func (g *Gateway) filler(req pipeline.Request, cerr *connect.Error) *strings.Replacer {
	return strings.NewReplacer(
		"{image}", strconv.Quote(req.Image), "{address}", g.address,
		"{code}", cerr.Code().String(), "{message}", passedOn.ReplaceAllString(cerr.Message(), ""),
		"{retry}", retryHint(cerr),
		"{size}", strconv.Itoa(len(req.ResourceList)), "{limit}", strconv.Itoa(g.limit))
}

// retryHint returns when to try again, if the server says so.
func retryHint(cerr *connect.Error) string {
	for _, detail := range cerr.Details() {
		if msg, err := detail.Value(); err == nil {
			if info, ok := msg.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
				return fmt.Sprintf(" (in %v)", info.GetRetryDelay().AsDuration().Round(time.Second))
			}
		}
	}
	return ""
}

// brokenConnection reports whether an error comes from the connection. Cancellations by the caller
// were handled before; any other cancellation is one of the HTTP/2 stream, which a server that
// speaks another protocol causes.
func brokenConnection(cerr *connect.Error) bool {
	if connect.IsWireError(cerr) {
		return false
	}
	switch cerr.Code() {
	case connect.CodeUnavailable, connect.CodeCanceled, connect.CodeUnknown:
		return true
	default:
		return false
	}
}

// explainsTimeout reports whether an error is the gateway's word on what an evaluation waited for when
// its time was up. Other servers only say that it was.
func explainsTimeout(cerr *connect.Error) bool {
	return cerr.Code() == connect.CodeDeadlineExceeded && connect.IsWireError(cerr) &&
		cerr.Message() != context.DeadlineExceeded.Error()
}

// WaitedFor adds what an evaluation waited for to the error of one that ran out of time without a
// word from the gateway. It returns other errors as they are.
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
