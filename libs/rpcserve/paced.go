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

// passed is a deadline in the past. Setting it makes a pending Read return.
var passed = time.Unix(1, 0)

// pacedBody is the body of a request, and fails if the client sends it too slowly. Otherwise a slow client could
// occupy the request's memory without a limit. A single goroutine must read the body, without pauses.
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

// Read implements io.Reader. It measures the client only within Read, because the server does not wait for it at
// other times. If the client is too slow, Read returns a *connect.Error, which Connect does not change.
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
