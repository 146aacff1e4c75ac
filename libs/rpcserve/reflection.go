// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Limits of gRPC reflection, which users of tools such as grpcurl need. We limit the number and the duration of
// streams, because clients may keep them open without sending.
const (
	// maxReflections is the maximum number of concurrent reflection streams.
	maxReflections = 16
	// reflectionTimeout is the maximum duration of a reflection stream. A tool needs less than a second.
	reflectionTimeout = time.Minute
	// reflectionRequestBytes is the maximum size of a reflection request, which contains a name. Responses may be larger,
	// because they contain the descriptions of a service and all its imports.
	reflectionRequestBytes  = 64 << 10
	reflectionResponseBytes = 4 << 20
)

// addReflection adds gRPC reflection in the versions v1 and v1alpha. Both versions share a limit for streams.
func (h *Handler) addReflection(names []string) {
	reflector := grpcreflect.NewStaticReflector(names...)
	slots := make(chan struct{}, maxReflections)
	versions := map[string]func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.ReflectV1ServiceName:      grpcreflect.NewHandlerV1,
		grpcreflect.ReflectV1AlphaServiceName: grpcreflect.NewHandlerV1Alpha,
	}
	for name, version := range versions {
		m := mount{
			name: name, requestBytes: reflectionRequestBytes, responseBytes: reflectionResponseBytes, idles: true,
		}
		h.add(m, func(options ...connect.HandlerOption) (string, http.Handler) {
			path, handler := version(reflector, options...)
			return path, h.limitStreams(slots, handler)
		})
	}
}

// limitStreams returns a handler that passes at most cap(slots) concurrent streams to next. It rejects further streams,
// and ends each stream after reflectionTimeout. A stream ends earlier if its client does not read the responses,
// because package serve then aborts it.
func (h *Handler) limitStreams(slots chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(reflectionTimeout))
			next.ServeHTTP(w, r)
		default:
			h.writeError(w, r, fault.WithRetryAfter(fault.New(fault.Exhausted,
				"%d reflection streams are open, which is the limit: try again later", cap(slots)), reflectionTimeout))
		}
	})
}
