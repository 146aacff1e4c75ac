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

// requirePace rejects slow requests to next, which reads each request at once: slow requests would use their memory for
// as long as their clients like.
func requirePace(maxBytes int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // the server uses its own request
		r.Body = newPacedBody(r.Body, http.NewResponseController(w), maxBytes)
		next.ServeHTTP(w, r)
	})
}

// passed is a deadline in the past.
var passed = time.Unix(1, 0)

// pacedBody is a request's body that must keep the pace. Only one goroutine may use it.
type pacedBody struct {
	io.ReadCloser
	meter  *pace.Meter
	credit int // bytes that may still earn time
}

func newPacedBody(body io.ReadCloser, conn *http.ResponseController, maxBytes int) *pacedBody {
	return &pacedBody{
		ReadCloser: body, credit: maxBytes,
		meter: pace.New(func() { _ = conn.SetReadDeadline(passed) }),
	}
}

// Read implements io.Reader. Only the time of waiting for the client counts. The error for a slow client is a
// *connect.Error, which Connect returns unchanged.
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
