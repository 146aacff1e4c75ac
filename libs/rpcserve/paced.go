// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"io"
	"net/http"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/pace"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// paced has next, which reads its whole request at once, give up requests that come too
// slowly: they would hold their memory for as long as the client likes.
func paced(maxBytes int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // the request is the server's
		r.Body = newPacedBody(r.Body, http.NewResponseController(w), maxBytes)
		next.ServeHTTP(w, r)
	})
}

// passed is a deadline that has passed.
var passed = time.Unix(1, 0)

// pacedBody is a request's body that has to keep the pace. It belongs to one goroutine.
type pacedBody struct {
	io.ReadCloser
	meter  *pace.Meter
	credit int // bytes that still earn waiting time: what is too large earns no more
}

func newPacedBody(body io.ReadCloser, conn *http.ResponseController, maxBytes int) *pacedBody {
	return &pacedBody{
		ReadCloser: body, credit: maxBytes,
		meter: pace.New(func() { _ = conn.SetReadDeadline(passed) }),
	}
}

// Read implements io.Reader. Time counts only while it waits for the client. The error for
// a client that is too slow is one of connect's, which connect passes on as it is.
func (b *pacedBody) Read(p []byte) (n int, err error) {
	inTime := b.meter.Do(func() int {
		n, err = b.ReadCloser.Read(p)
		earned := min(n, b.credit)
		b.credit -= earned
		return earned
	})
	if !inTime {
		return n, rpcfault.ToConnect(fault.New(fault.DeadlineExceeded,
			"the request was given up: it comes with less than %d bytes per second and pauses of more than %v: "+
				"check its client, and the network between", pace.BytesPerSecond, pace.Grace))
	}
	return n, err
}
