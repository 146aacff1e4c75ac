// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"net/http"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// compressionHeaders contains the headers that name the compression of a request: in gRPC and gRPC-Web, in Connect,
// and in streams of Connect.
var compressionHeaders = []string{"Grpc-Encoding", "Content-Encoding", "Connect-Content-Encoding"}

// rejectCompressed rejects compressed requests with Unimplemented before they are read. The error explains the
// remedy, which Connect's own error does not.
func rejectCompressed(next http.Handler) http.Handler {
	errors := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := compressionOf(r); name != "" {
			_ = errors.Write(w, r, rpcfault.ToConnect(fault.New(fault.Unimplemented,
				"the request is compressed with %q, which this server does not take: send it without compression", name)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// compressionOf returns the name of a request's compression, or an empty string.
func compressionOf(r *http.Request) string {
	for _, header := range compressionHeaders {
		if name := r.Header.Get(header); name != "" && name != "identity" {
			return name
		}
	}
	return ""
}
