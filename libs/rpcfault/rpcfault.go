// SPDX-License-Identifier: Apache-2.0

// Package rpcfault converts fault classes to RPC codes, and RPC codes back to fault classes. No other package does.
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

// Detailer is an error with a message for programs, which travels as a status detail.
// Clients that ignore details see no difference.
type Detailer interface {
	error
	// Detail returns the message to attach, small enough for a header (under
	// 16 KiB), or nil.
	Detail() proto.Message
}

// maxMessageBytes bounds a status message. It travels in a header, where each byte may need three, and proxies reject
// headers of more than about 60 KiB.
const maxMessageBytes = 8 << 10

// maxRetryAfter bounds retry hints: callers follow them.
const maxRetryAfter = 5 * time.Minute

// codes maps each class to its code.
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

// Code returns the code of err's class.
func Code(err error) connect.Code {
	return codes[fault.Of(err)]
}

// ToConnect returns err as it goes over the wire: the code of its class, its
// text, its detail and its retry hint. It returns nil for nil, and an error that
// connect itself made as it is.
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

// text returns the text of err as a status can carry it: of bounded size, and in UTF-8.
func text(err error) string {
	return strings.ToValidUTF8(excerpt.Middle(err.Error(), maxMessageBytes), "\uFFFD")
}

// addDetail attaches msg, unless it is nil. It omits a message that cannot be marshalled: the text contains the same.
func addDetail(cerr *connect.Error, msg proto.Message) {
	if msg == nil {
		return
	}
	if d, err := connect.NewErrorDetail(msg); err == nil {
		cerr.AddDetail(d)
	}
}

// FromConnect returns an error that a connect client got as a classified error,
// with its text and its retry hint. It returns nil for nil.
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

// RetryAfter returns the hint in info, within bounds: another program gave it.
func RetryAfter(info *errdetails.RetryInfo) time.Duration {
	return boundRetryAfter(info.GetRetryDelay().AsDuration())
}

func boundRetryAfter(after time.Duration) time.Duration { return min(max(after, 0), maxRetryAfter) }

// Class is the inverse of Code; a code that no class has is Internal.
func Class(code connect.Code) fault.Class {
	for class, c := range codes {
		if c == code {
			return class
		}
	}
	return fault.Internal
}

// Interceptor maps the errors of handlers, unary and streaming. It belongs
// innermost, so that tracing and metrics see the mapped code.
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
