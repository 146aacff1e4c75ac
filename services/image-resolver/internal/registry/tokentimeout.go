// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// tokenTimeout bounds the answer of a token server, so that what is left of a caller's
// time is enough to report that it is slow.
const tokenTimeout = 8 * time.Second

// slowError is a token server that took too long.
type slowError struct{ host string }

func (e *slowError) Error() string {
	return fmt.Sprintf("the token server %s has not answered within %v", e.host, tokenTimeout)
}

// withTokenTimeout returns send for requests to token servers, whose answers are read within
// tokenTimeout.
func withTokenTimeout(send func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeoutCause(req.Context(), tokenTimeout, &slowError{host: req.URL.Host})
		resp, err := send(req.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, slow(ctx, err)
		}
		resp.Body = &timedBody{ReadCloser: resp.Body, cancel: cancel, slow: func(err error) error { return slow(ctx, err) }}
		return resp, nil
	}
}

// slow returns err, or why ctx ended if that was for the time it took.
func slow(ctx context.Context, err error) error {
	if cause, ok := context.Cause(ctx).(*slowError); ok { //nolint:errorlint // the cause itself, not what it wraps
		return cause
	}
	return err
}

// timedBody is a body that has to be read before the timeout.
type timedBody struct {
	io.ReadCloser
	cancel context.CancelFunc
	slow   func(error) error
}

func (h *timedBody) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // as readers have it
		err = h.slow(err)
	}
	return n, err
}

func (h *timedBody) Close() error {
	defer h.cancel()
	return h.ReadCloser.Close()
}
