// SPDX-License-Identifier: Apache-2.0

// Package evalserve serves Porch's function evaluator service over gRPC. It limits the memory of requests and answers,
// and does not copy the resource lists in them. Without this package, Connect would double its buffers until a message
// fits, and keep a second copy of each list. A codec for Connect could not avoid the copy, because Connect reuses the
// buffer that the codec decodes from. A request passes these stages:
//
//	libs/serve      HTTP/2: connections, flow control, minimum speed of reading answers
//	libs/rpcserve   access, no compression, minimum speed of sending requests
//	budget.go       reserves memory for the announced size of the request, before the request is read
//	request.go      reads the message and keeps its resource list apart from Connect
//	Connect         decodes the rest of the message, and calls interceptors and the service
//	reservation.go  waits for the function's share of the memory, and later for memory for the answer
//	response.go     inserts the resource list into the message that Connect writes
package evalserve

import (
	"context"
	"errors"
	"math"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

const (
	// prefixBytes is the length of the prefix that gRPC writes before a message: one byte of flags, and the message's
	// length in four bytes.
	prefixBytes = 5
	// listField is the number of the field resource_list, in requests and in responses.
	listField = protowire.Number(1)
	// fieldBytes is the maximum number of bytes that a field's number and length occupy in a message.
	fieldBytes = 2 * 10
)

// Config configures the handler of an evaluator service.
type Config struct {
	Service evaluatorconnect.FunctionEvaluatorHandler
	// Budget limits the memory of requests and answers.
	Budget *Budget
	// MaxMessageBytes is the maximum size of each request and each response. Callers of [NewHandler] must also pass
	// options that set the same limits in Connect.
	MaxMessageBytes int64
	// Rejected, if not nil, is called with the error of each request that the handler rejected before reading it fully.
	Rejected func(context.Context, error)
}

// call contains the memory reservation and the resource lists of a request. The lists bypass Connect so that they
// are not copied. Only one goroutine may use a call.
type call struct {
	reservation       *Reservation
	proto             bool   // true for protocol buffers over gRPC
	request, response []byte // resource lists of the request and the response
	split             bool   // true if the list was removed from the request before Connect read it
}

type callKey struct{}

// Of returns the memory reservation of the request that ctx belongs to, or nil if the request has no reservation.
func Of(ctx context.Context) *Reservation {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c.reservation
	}
	return nil
}

// NewHandler returns the HTTP path and the handler of the service, like the functions that Connect generates. The
// handler does not compress responses.
func NewHandler(cfg Config, options ...connect.HandlerOption) (path string, handler http.Handler) {
	// The interceptor exchangeLists is the outermost, because it is first. The tracing interceptor is inside, so it
	// measures messages that include their lists.
	options = append([]connect.HandlerOption{connect.WithInterceptors(exchangeLists(cfg.MaxMessageBytes))}, options...)
	// Connect must not compress messages, because type response inserts the list into the bytes that Connect writes. It
	// cannot insert the list into compressed bytes.
	options = append(options, connect.WithCompressMinBytes(math.MaxInt))
	path, next := evaluatorconnect.NewFunctionEvaluatorHandler(cfg.Service, options...)
	return path, &receiver{cfg: cfg, connect: next}
}

// receiver is the HTTP handler of an evaluator service. It reads a request within the memory budget, and passes it
// to Connect's handler.
type receiver struct {
	cfg     Config
	connect http.Handler
}

// ServeHTTP implements http.Handler.
func (h *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	from := source{conn: r.RemoteAddr, peer: serve.Peer(r.RemoteAddr)}
	c := &call{
		reservation: &Reservation{budget: h.cfg.Budget, from: from}, proto: isProto(r.Header.Get("Content-Type")),
	}
	defer c.reservation.release()
	body := &body{ReadCloser: r.Body, call: c, max: h.cfg.MaxMessageBytes}
	body.receiveRequest(r)
	r = r.WithContext(context.WithValue(ctx, callKey{}, c))
	r.Body = body
	h.connect.ServeHTTP(&response{ResponseWriter: w, call: c}, r)
	if body.rejected != nil && h.cfg.Rejected != nil {
		h.cfg.Rejected(ctx, body.rejected)
	}
}

// exchangeLists returns an interceptor for the resource lists that bypass Connect. The interceptor adds the list to a
// request before the service receives it, and removes the list from a response before Connect serializes it.
func exchangeLists(maxMessage int64) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			c, ok := ctx.Value(callKey{}).(*call)
			if msg, isRequest := req.Any().(*evaluator.EvaluateFunctionRequest); ok && isRequest && c.split {
				msg.ResourceList = c.request
				c.request = nil
			}
			resp, err := next(ctx, req)
			if err != nil {
				return nil, wordEarlyDeadline(ctx, req, err)
			}
			// We remove the list, because type response inserts it later. A response that is too large keeps its list, so that
			// Connect rejects the response. If the client does not use protocol buffers over gRPC, the list also stays, because
			// Connect then serializes it itself.
			msg, isResponse := resp.Any().(*evaluator.EvaluateFunctionResponse)
			if ok && isResponse && c.proto && int64(proto.Size(msg)) <= maxMessage {
				c.response = msg.GetResourceList()
				msg.ResourceList = nil
			}
			return resp, nil
		}
	}
}

// wordEarlyDeadline rewords the error of a request whose deadline passed before its evaluation began. The new error
// names the function, because Connect's own error says only "context deadline exceeded". Other errors stay unchanged.
func wordEarlyDeadline(ctx context.Context, req connect.AnyRequest, err error) error {
	msg, isRequest := req.Any().(*evaluator.EvaluateFunctionRequest)
	given, ok := errors.AsType[*connect.Error](err)
	if !isRequest || !ok || ctx.Err() == nil || given.Message() != ctx.Err().Error() {
		return err
	}
	return rpcfault.ToConnect(function.Interrupted(ctx.Err(), msg.GetImage(), 0, "before it began"))
}
