package frontdoor

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
)

// Bounded returns next, which serves h, with the bytes of its requests counted before
// they are read: once they are in memory it is too late to refuse them. Requests that come
// together and say how long they are take their room whole; otherwise each would get a
// part of it, and all of them be refused.
func (h *Handler) Bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, held := r.Context(), &share{of: &h.inHand}
		defer held.release()
		body := &countedBody{ReadCloser: r.Body, share: held, most: h.maxMessage}
		r = r.WithContext(context.WithValue(ctx, shareKey{}, held))
		r.Body = body
		body.refused = held.reserve(ctx, min(announced(r, body), h.maxMessage))
		next.ServeHTTP(w, r)
		if body.refused != nil {
			h.refused(ctx, body.refused)
		}
	})
}

// shareKey is the key of a request's share in its context.
type shareKey struct{}

// shareOf returns what the request of ctx holds, nil if that is not counted.
func shareOf(ctx context.Context) *share {
	held, _ := ctx.Value(shareKey{}).(*share)
	return held
}

// prefixBytes is the length of what comes before a message in gRPC: a byte of flags, and
// the message's length in four.
const prefixBytes = 5

// announced returns how long a request says that it is, zero or less if it does not.
func announced(r *http.Request, body *countedBody) int64 {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
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
	share *share
	read  int64
	most  int64 // what comes after that is only read to be thrown away
	// refused is why no more is read, nil if there is no reason.
	refused error
}

// Read implements io.Reader. The error for a request that there is no room for is one
// of connect's, which it passes on as it is.
func (b *countedBody) Read(p []byte) (int, error) {
	if b.refused != nil {
		return 0, rpcfault.ToConnect(b.refused)
	}
	if b.ahead != nil && b.ahead.Len() > 0 {
		return b.ahead.Read(p)
	}
	n, err := b.ReadCloser.Read(p)
	if given, ok := errors.AsType[*connect.Error](err); ok { // by rpcserve, which waits for nobody for ever
		b.refused = rpcfault.FromConnect(given)
		return n, err
	}
	b.read += int64(n)
	if b.refused = b.share.grow(min(b.read, b.most)); b.refused != nil {
		return 0, rpcfault.ToConnect(b.refused)
	}
	return n, err
}
