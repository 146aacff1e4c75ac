package registry

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// tokenTimeout bounds what a token server may take for its few words, so that what is
// left of a caller's time is enough to say so.
const tokenTimeout = 8 * time.Second

// slowError is a token server that took too long.
type slowError struct{ host string }

func (e *slowError) Error() string {
	return fmt.Sprintf("the token server %s has not answered within %v", e.host, tokenTimeout)
}

// hurry is send for a request to a token server: it ends in time, with its answer.
func hurry(send func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeoutCause(req.Context(), tokenTimeout, &slowError{host: req.URL.Host})
		resp, err := send(req.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, slow(ctx, err)
		}
		resp.Body = &hurried{ReadCloser: resp.Body, cancel: cancel, slow: func(err error) error { return slow(ctx, err) }}
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

// hurried is a body that has to be read in time.
type hurried struct {
	io.ReadCloser
	cancel context.CancelFunc
	slow   func(error) error
}

func (h *hurried) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // as readers have it
		err = h.slow(err)
	}
	return n, err
}

func (h *hurried) Close() error {
	defer h.cancel()
	return h.ReadCloser.Close()
}
