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

// Reflection is for users who look at a server now and then. Its streams may stay open,
// so they are few, and end.
const (
	// maxReflections is how many streams of reflection there may be at a time.
	maxReflections = 16
	// reflectionTimeout bounds a stream. A tool asks all that it needs within a second.
	reflectionTimeout = time.Minute
	// reflectionRequestBytes is larger than any name, and reflectionResponseBytes than
	// the descriptors of a service with all that they import.
	reflectionRequestBytes  = 64 << 10
	reflectionResponseBytes = 4 << 20
)

// reflection adds the reflection services to mux, both versions under one bound.
func reflection(mux *http.ServeMux, names []string) error {
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
		err := m.on(mux, func(options ...connect.HandlerOption) (string, http.Handler) {
			path, handler := version(reflector, options...)
			return path, few(slots, brief(handler))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// few has as many requests served at a time as there are slots, and rejects others.
func few(slots chan struct{}, next http.Handler) http.Handler {
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

// brief ends streams after reflectionTimeout. Package serve ends those whose client does
// not read, before that.
func brief(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(reflectionTimeout))
		next.ServeHTTP(w, r)
	})
}
