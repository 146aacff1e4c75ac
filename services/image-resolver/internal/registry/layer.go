// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// layerKey marks the context of a request for a layer.
type layerKey struct{}

// isLayer reports whether an answer is a layer, which may be larger than all other answers.
func isLayer(req *http.Request, resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK && req.Context().Value(layerKey{}) != nil &&
		operation(origin(req)) == opBlob
}

// Layer calls read with the compressed content of a layer, as the registry sends it: read bounds
// it and checks its digest. Errors of the connection are explained; others are those of read.
func (s *Session) Layer(ctx context.Context, digest string, read func(io.Reader) error) error {
	resp, err := s.send(context.WithValue(ctx, layerKey{}, true), http.MethodGet, s.url("blobs", digest))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body := &layerBody{Reader: resp.Body, answered: s.guard.slot.answered}
	err = read(body)
	if body.err != nil {
		return s.explain(ctx, "read the layer "+digest, unreachableError{body.err})
	}
	return err
}

// layerBody records why a layer ended early, and that the registry answers as long as it sends.
type layerBody struct {
	io.Reader
	answered func()
	err      error
}

func (b *layerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 {
		b.answered()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
