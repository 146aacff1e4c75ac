// SPDX-License-Identifier: Apache-2.0

// Package listwire serves evaluations over gRPC without further copies of their resource lists: a request is read
// into memory of its own size, where its list stays, and a response's list is written as it is. Connect decodes and
// encodes only what is beside the lists. Its own buffers double until a message fits, and hold a second copy of it.
package listwire

import (
	"context"
	"math"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
)

const (
	// prefixBytes is the length of what comes before a message in gRPC: a byte of flags, and the message's
	// length in four.
	prefixBytes = 5
	// listField is the number of the field resource_list, in requests and in responses.
	listField = protowire.Number(1)
	// fieldBytes is how many bytes a field's number and length have at most.
	fieldBytes = 2 * 10
)

// lists are the resource lists of a call that Connect does not see. They belong to the call's goroutine.
type lists struct {
	request, response []byte
	kept              bool // Connect's request lacks its list
}

// listsKey is the key of a call's lists in its context.
type listsKey struct{}

// NewHandler returns the handler of service, and the path to serve it on, as Connect's generated function does.
// Requests and responses have maxMessage bytes at most, which options set for Connect, too. A request that is
// being read takes memory of the size that it announces. Responses are not compressed.
func NewHandler(
	service evaluatorconnect.FunctionEvaluatorHandler, maxMessage int64, options ...connect.HandlerOption,
) (path string, handler http.Handler) {
	// The first interceptor is the outermost one: tracing measures whole messages.
	options = append([]connect.HandlerOption{connect.WithInterceptors(exchange(maxMessage))}, options...)
	// A list is put into a message that is not compressed.
	options = append(options, connect.WithCompressMinBytes(math.MaxInt))
	path, next := evaluatorconnect.NewFunctionEvaluatorHandler(service, options...)
	return path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isProto(r.Header.Get("Content-Type")) {
			next.ServeHTTP(w, r)
			return
		}
		kept := new(lists)
		r = r.WithContext(context.WithValue(r.Context(), listsKey{}, kept))
		r.Body = &body{ReadCloser: r.Body, most: maxMessage, lists: kept}
		next.ServeHTTP(&response{ResponseWriter: w, lists: kept}, r)
	})
}

// isProto reports whether Connect decodes messages of a content type as protocol buffers of gRPC. As it does, it
// ignores the case of letters.
func isProto(contentType string) bool {
	switch strings.ToLower(contentType) {
	case "application/grpc", "application/grpc+proto", "application/grpc-web", "application/grpc-web+proto":
		return true
	default:
		return false
	}
}

// exchange gives handlers the lists of requests, and takes those of responses that are not too large.
func exchange(maxMessage int64) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			kept, ok := ctx.Value(listsKey{}).(*lists)
			if !ok {
				return next(ctx, req)
			}
			if msg, ok := req.Any().(*evaluator.EvaluateFunctionRequest); ok && kept.kept {
				msg.ResourceList, kept.request = kept.request, nil
			}
			resp, err := next(ctx, req)
			if err != nil {
				return nil, err
			}
			msg, ok := resp.Any().(*evaluator.EvaluateFunctionResponse)
			if ok && int64(proto.Size(msg)) <= maxMessage {
				kept.response, msg.ResourceList = msg.GetResourceList(), nil
			}
			return resp, nil
		}
	}
}
