// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"context"
	"io"
	"log/slog"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// silent is a source that stops in the middle of each layer.
type silent struct{ *images }

func (s silent) Layer(ctx context.Context, _, _ string, read func(io.Reader) error) error {
	return read(readerFunc(func([]byte) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}))
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
