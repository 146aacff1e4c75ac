package rpcserve

import (
	"io"
	"net/http"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// A request that is being sent has to bring so many bytes in each such time that the
// server waits for them: one whose client has stopped would hold its memory for ever.
const (
	leastBytes = 16 << 10
	leastTime  = 30 * time.Second
)

// paced has next, which serves no streams, give up requests that hardly come any more.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(r.Context()) // the request is the server's
		r.Body = newPacedBody(r.Body, http.NewResponseController(w))
		next.ServeHTTP(w, r)
	})
}

// pacedBody is a request's body that has to go on. It belongs to one goroutine.
type pacedBody struct {
	io.ReadCloser
	server *http.ResponseController
	alarm  *time.Timer   // runs while a read does
	rang   chan struct{} // of size one: the alarm has interrupted the read

	patience time.Duration // left for this part of the body
	come     int           // bytes of it
}

func newPacedBody(body io.ReadCloser, server *http.ResponseController) *pacedBody {
	b := &pacedBody{ReadCloser: body, server: server, rang: make(chan struct{}, 1), patience: leastTime}
	b.alarm = time.AfterFunc(leastTime, b.interrupt)
	b.alarm.Stop()
	return b
}

// interrupt ends the read that goes on. A server that has no deadlines lets it be.
func (b *pacedBody) interrupt() {
	_ = b.server.SetReadDeadline(time.Unix(1, 0))
	b.rang <- struct{}{}
}

// Read implements io.Reader. Time counts only while it waits for the client. The error for
// a client that stalls is one of connect's, which connect passes on as it is.
func (b *pacedBody) Read(p []byte) (int, error) {
	start := time.Now()
	b.alarm.Reset(b.patience)
	n, err := b.ReadCloser.Read(p)
	if !b.alarm.Stop() {
		<-b.rang // it must not ring in the connection's next request
		return n, rpcfault.ToConnect(fault.New(fault.DeadlineExceeded,
			"the request was given up: less than %d bytes of it came in %v: check its client, and the network between", leastBytes, leastTime))
	}
	b.patience, b.come = b.patience-time.Since(start), b.come+n
	if b.come >= leastBytes {
		b.patience, b.come = leastTime, 0
	}
	return n, err
}
