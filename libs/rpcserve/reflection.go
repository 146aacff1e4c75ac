// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"net/http"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// Reflection is for interactive users. Its streams may be idle, so their number and their time are limited.
const (
	// maxReflections is the maximum number of concurrent streams of reflection.
	maxReflections = 16
	// reflectionTimeout limits the time of a stream. A tool needs less than a second.
	reflectionTimeout = time.Minute
	// reflectionRequestBytes is larger than any name, and reflectionResponseBytes is larger than the descriptors of a
	// service with all imports.
	reflectionRequestBytes  = 64 << 10
	reflectionResponseBytes = 4 << 20
)

// addReflection adds the reflection services to mux. Both versions share a limit.
func addReflection(mux *http.ServeMux, names []string) error {
	reflector := grpcreflect.NewStaticReflector(names...)
	slots := make(chan struct{}, maxReflections)
	versions := map[string]func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.ReflectV1ServiceName:      grpcreflect.NewHandlerV1,
		grpcreflect.ReflectV1AlphaServiceName: grpcreflect.NewHandlerV1Alpha,
	}
	for name, version := range versions {
		m := mount{
			name: name, requestBytes: reflectionRequestBytes, responseBytes: reflectionResponseBytes,
			flushes: true, idles: true,
		}
		err := m.addTo(mux, func(options ...connect.HandlerOption) (string, http.Handler) {
			path, handler := version(reflector, options...)
			return path, limitConcurrency(slots, limitDuration(handler))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// limitConcurrency serves at most cap(slots) requests concurrently and rejects further requests.
func limitConcurrency(slots chan struct{}, next http.Handler) http.Handler {
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			_ = errors.Write(w, r, rpcfault.ToConnect(fault.WithRetryAfter(fault.New(fault.Exhausted,
				"%d reflection streams are open, as many as there may be: try again later", cap(slots)), reflectionTimeout)))
		}
	})
}

// limitDuration ends streams after reflectionTimeout. Package serve ends streams whose clients do not read earlier.
func limitDuration(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(reflectionTimeout))
		next.ServeHTTP(w, r)
	})
}
