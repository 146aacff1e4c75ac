// SPDX-License-Identifier: Apache-2.0

package membudget

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/serve"
)

// Bounded returns next with the bytes of its requests, of which maxMessage are kept, reserved in
// the memory budget before they are read: once they are in memory it is too late to reject
// them. The bytes as they were sent are what counts: requests are not compressed, and what
// is decoded of them, unknown fields included, is not larger. rejected, if not nil, is called for
// each request that was not read to its end.
func (b *Budget) Bounded(maxMessage int64, rejected func(context.Context, error), next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		held := b.open(source{conn: r.RemoteAddr, peer: serve.Peer(r.RemoteAddr)})
		defer held.release()
		body := &countedBody{ReadCloser: r.Body, held: held, most: maxMessage}
		r = r.WithContext(context.WithValue(ctx, reservationKey{}, held))
		r.Body = body
		body.rejected = held.acquire(ctx, min(announced(r, body, maxMessage), maxMessage))
		next.ServeHTTP(w, r)
		if body.rejected != nil && rejected != nil {
			rejected(ctx, body.rejected)
		}
	})
}

// reservationKey is the key of a request's reservation in its context.
type reservationKey struct{}

// Of returns the reservation of the request of ctx, nil if it has none.
func Of(ctx context.Context) *Reservation {
	held, _ := ctx.Value(reservationKey{}).(*Reservation)
	return held
}

// prefixBytes is the length of what comes before a message in gRPC: a byte of flags, and
// the message's length in four.
const prefixBytes = 5

// announced returns the length of a request: the one that it announces, or the largest one
// if it announces none. It returns zero if the client sends not even that.
func announced(r *http.Request, body *countedBody, largest int64) int64 {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		if r.ContentLength < 0 {
			return largest
		}
		return r.ContentLength
	}
	var prefix [prefixBytes]byte
	n, err := io.ReadFull(body.ReadCloser, prefix[:])
	body.ahead = bytes.NewReader(prefix[:n])
	if err != nil {
		return 0
	}
	return int64(binary.BigEndian.Uint32(prefix[1:]))
}

// countedBody is a request's body whose bytes are counted.
type countedBody struct {
	io.ReadCloser
	ahead *bytes.Reader // what has been read to learn the length
	held  *Reservation
	read  int64
	most  int64 // what comes after that is only read to be thrown away
	// rejected is why no more is read, nil if there is no reason.
	rejected error
}

// Read implements io.Reader. The error for a request that is rejected is one of connect's,
// which it passes on as it is.
func (b *countedBody) Read(p []byte) (int, error) {
	if b.rejected != nil {
		return 0, rpcfault.ToConnect(b.rejected)
	}
	if b.ahead != nil && b.ahead.Len() > 0 {
		return b.ahead.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if given, ok := errors.AsType[*connect.Error](err); ok { // by rpcserve, for a client that is too slow
		b.rejected = rpcfault.FromConnect(given)
		return n, err
	}
	b.read += int64(n)
	if b.rejected = b.held.grow(min(b.read, b.most)); b.rejected != nil {
		return 0, rpcfault.ToConnect(b.rejected)
	}
	if errors.Is(err, io.EOF) {
		b.held.received(min(b.read, b.most))
	}
	return n, err
}
