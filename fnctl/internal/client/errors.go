package client

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

// FunctionError is a function that ran and failed.
type FunctionError struct {
	Image string
	// Message is the gateway's account of it.
	Message string
	// Failure has the details; nil if the gateway sent none.
	Failure *functionrunnerv1.FunctionFailure
}

func (e *FunctionError) Error() string { return e.Message }

// CallError is an evaluation that did not come to its end for another reason than
// the function.
type CallError struct {
	// Problem says what went wrong.
	Problem string
	// Advice says what to do about it.
	Advice string
	Cause  error
}

func (e *CallError) Error() string { return e.Problem + ": " + e.Advice }

func (e *CallError) Unwrap() error { return e.Cause }

// explain turns an error of the RPC into one for people.
func (g *Gateway) explain(ctx context.Context, req pipeline.Request, err error) error {
	// The caller knows better than the connection why it ended.
	if errors.Is(ctx.Err(), context.Canceled) {
		return &CallError{Problem: "interrupted", Advice: "nothing was written", Cause: ctx.Err()}
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
	return &CallError{Problem: problem, Advice: advice, Cause: err}
}

// failureOf returns the details of a failed function, if there are any.
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

// account says what went wrong and what to do about it.
func (g *Gateway) account(req pipeline.Request, cerr *connect.Error) (problem, advice string) {
	if !connect.IsWireError(cerr) && cerr.Code() == connect.CodeUnavailable {
		return fmt.Sprintf("the gateway at %s cannot be reached (%s)", g.address, cerr.Message()),
			"start it, or give its address with --address or FNR_ADDRESS"
	}
	switch cerr.Code() {
	case connect.CodeNotFound:
		return fmt.Sprintf("no evaluator of the gateway serves function %q", req.Image),
			"check the image's name and tag, map it in the exec evaluator's config, or enable the pod evaluator"
	case connect.CodeResourceExhausted:
		return fmt.Sprintf("function %q was not run (%s)", req.Image, cerr.Message()),
			fmt.Sprintf("try again if the gateway is busy; if the package is too large (%d bytes now), raise --max-message-size, now %d, here and --max-request-body-size at the gateway", len(req.ResourceList), g.limit)
	case connect.CodeDeadlineExceeded:
		return fmt.Sprintf("function %q did not answer in time", req.Image),
			"raise --timeout: the first call of a function that runs in a pod has to wait for the pod"
	case connect.CodeFailedPrecondition:
		return fmt.Sprintf("function %q cannot be started (%s)", req.Image, cerr.Message()),
			"check that the image exists and that the cluster may pull it"
	case connect.CodeInvalidArgument:
		return fmt.Sprintf("the gateway refused the call of function %q (%s)", req.Image, cerr.Message()),
			"check the image's name and tag"
	case connect.CodeUnavailable:
		return fmt.Sprintf("function %q was not run (%s)", req.Image, cerr.Message()), "try again"
	case connect.CodeUnimplemented:
		return fmt.Sprintf("what answers at %s is no function runner (%s)", g.address, cerr.Message()),
			"check --address or FNR_ADDRESS"
	}
	return fmt.Sprintf("function %q could not be evaluated (%s: %s)", req.Image, cerr.Code(), cerr.Message()),
		"check the gateway at " + g.address + " and its log"
}
