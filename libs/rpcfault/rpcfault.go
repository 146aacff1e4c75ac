// SPDX-License-Identifier: Apache-2.0

// Package rpcfault converts errors to RPC errors and back. Package fault gives each error a class, such as NotFound.
// Package rpcfault contains the only mapping between these classes and the status codes of RPCs.
package rpcfault

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Detailer is an error with additional data for programs, such as the results of a function. The server sends the
// data as a status detail.
type Detailer interface {
	error
	// Detail returns the additional data, or nil. It must be smaller than 16 KiB, because the server sends it in a header.
	Detail() proto.Message
}

// maxMessageBytes is the maximum length of an RPC error message. The server sends the message in a header, where each
// byte may need up to three bytes. Proxies reject headers of more than about 60 KiB.
const maxMessageBytes = 8 << 10

// maxRetryAfter is the maximum delay in a retry hint. Callers wait for the delay in a hint, however long it is.
const maxRetryAfter = 5 * time.Minute

var codes = map[fault.Class]connect.Code{
	fault.Internal:         connect.CodeInternal,
	fault.Invalid:          connect.CodeInvalidArgument,
	fault.NotFound:         connect.CodeNotFound,
	fault.Denied:           connect.CodePermissionDenied,
	fault.Precondition:     connect.CodeFailedPrecondition,
	fault.Exhausted:        connect.CodeResourceExhausted,
	fault.Unavailable:      connect.CodeUnavailable,
	fault.DeadlineExceeded: connect.CodeDeadlineExceeded,
	fault.Canceled:         connect.CodeCanceled,
	fault.Unimplemented:    connect.CodeUnimplemented,
}

// Code returns the status code for err's class.
func Code(err error) connect.Code { return codes[fault.Of(err)] }

// ToConnect converts err to an RPC error with the text of err and the status code of err's class. The RPC error also
// contains err's status detail and retry hint, if err has them. ToConnect returns nil for nil, and returns a
// *connect.Error unchanged.
func ToConnect(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*connect.Error](err); ok {
		return err
	}
	cerr := connect.NewError(Code(err), errors.New(text(err)))
	if d, ok := errors.AsType[Detailer](err); ok {
		addDetail(cerr, d.Detail())
	}
	if after, ok := fault.RetryAfter(err); ok {
		addDetail(cerr, &errdetails.RetryInfo{RetryDelay: durationpb.New(boundRetryAfter(after))})
	}
	return cerr
}

// text returns err's text as the error message for clients, in valid UTF-8 and shortened to maxMessageBytes.
func text(err error) string {
	return strings.ToValidUTF8(excerpt.Middle(err.Error(), maxMessageBytes), "\uFFFD")
}

// addDetail adds msg to the details of cerr, unless msg is nil. It omits a message that cannot be marshaled, because
// the text of the error contains the same information.
func addDetail(cerr *connect.Error, msg proto.Message) {
	if msg == nil {
		return
	}
	if d, err := connect.NewErrorDetail(msg); err == nil {
		cerr.AddDetail(d)
	}
}

// FromConnect converts an error of a Connect client to an error with a fault.Class. It keeps the text and the retry
// hint. It returns nil and any other error unchanged.
func FromConnect(err error) error {
	cerr, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return err
	}
	class := Class(cerr.Code())
	out := fault.New(class, "%s", cerr.Message())
	for _, d := range cerr.Details() {
		if msg, err := d.Value(); err == nil {
			if info, ok := msg.(*errdetails.RetryInfo); ok {
				out = fault.WithRetryAfter(out, RetryAfter(info))
			}
		}
	}
	return out
}

// RetryAfter returns the delay in a retry hint from another program, limited to maxRetryAfter.
func RetryAfter(info *errdetails.RetryInfo) time.Duration {
	return boundRetryAfter(info.GetRetryDelay().AsDuration())
}

func boundRetryAfter(after time.Duration) time.Duration { return min(max(after, 0), maxRetryAfter) }

// Class returns the fault class for a status code, or Internal if no class has this code.
func Class(code connect.Code) fault.Class {
	for class, c := range codes {
		if c == code {
			return class
		}
	}
	return fault.Internal
}

// Interceptor returns a server interceptor that converts the errors of handlers with ToConnect. It must run inside the
// interceptors for tracing and metrics, so that they record the status code.
func Interceptor() connect.Interceptor { return interceptor{} }

type interceptor struct{}

func (interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		resp, err := next(ctx, req)
		if req.Spec().IsClient {
			return resp, err
		}
		return resp, ToConnect(err)
	}
}

func (interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		return ToConnect(next(ctx, conn))
	}
}
