// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"net/http"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// compressionHeaders name the compression of a request: in gRPC and gRPC-Web, in Connect,
// and in streams of Connect.
var compressionHeaders = []string{"Grpc-Encoding", "Content-Encoding", "Connect-Content-Encoding"}

// uncompressed has compressed requests answered with Unimplemented before they are read, in
// words that explain what to do. Connect's own name no compression that would be supported.
func uncompressed(next http.Handler) http.Handler {
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := compression(r); name != "" {
			_ = errors.Write(w, r, rpcfault.ToConnect(fault.New(fault.Unimplemented,
				"the request is compressed with %q, which this server does not take: send it without compression", name)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// compression returns the name of a request's compression, empty if it has none.
func compression(r *http.Request) string {
	for _, header := range compressionHeaders {
		if name := r.Header.Get(header); name != "" && name != "identity" {
			return name
		}
	}
	return ""
}
