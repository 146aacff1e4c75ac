// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"io"
	"net/http"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/slowclient"
)

// requirePace rejects requests whose clients send too slowly. The memory of such requests would be occupied for as
// long as their clients want. The handler next must read each request without pauses.
func requirePace(maxBytes int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // a copy, because the server still uses the original request
		r.Body = newPacedBody(r.Body, http.NewResponseController(w), maxBytes)
		next.ServeHTTP(w, r)
	})
}

// passed is a deadline in the past.
var passed = time.Unix(1, 0)

// pacedBody is the body of a request whose client must keep the pace. Only one goroutine may use it.
type pacedBody struct {
	io.ReadCloser
	meter  *slowclient.Meter
	credit int // number of further bytes that earn time
}

func newPacedBody(body io.ReadCloser, conn *http.ResponseController, maxBytes int) *pacedBody {
	return &pacedBody{
		ReadCloser: body, credit: maxBytes,
		meter: slowclient.New(func() { _ = conn.SetReadDeadline(passed) }),
	}
}

// Read implements io.Reader. Only the time within Read counts for the pace, because only then the server waits for
// the client. For a slow client, Read returns a *connect.Error, which Connect passes on unchanged.
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
				"check its client, and the network between", slowclient.BytesPerSecond, slowclient.Grace))
	}
	return n, err
}
