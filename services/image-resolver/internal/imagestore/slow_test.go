// SPDX-License-Identifier: Apache-2.0

package imagestore_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/imagestore"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// slow is a source that sends a byte of a layer after each pause.
type slow struct {
	*images
	pause time.Duration
}

func (s slow) Layer(ctx context.Context, _, _ string, read imagestore.ReadLayer) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return read(readerFunc(func(p []byte) (int, error) {
		select {
		case <-time.After(s.pause):
			return copy(p, "x"), nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}), stop)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

var _ io.Reader = readerFunc(nil)

// TestSlowRegistryIsGivenUp has registries that send nothing, or a byte now and then.
func TestSlowRegistryIsGivenUp(t *testing.T) {
	for name, pause := range map[string]time.Duration{"nothing": time.Hour, "a byte each ten seconds": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			source, dir := &images{dir: t.TempDir()}, t.TempDir()
			digest := source.push(t, map[string]string{"a": strings.Repeat("x", 1000)})
			synctest.Test(t, func(t *testing.T) {
				store := newStore(t, dir, nil, func(cfg *imagestore.Config) { cfg.Source = slow{source, pause} })
				start := time.Now()
				_, _, err := store.Open(t.Context(), repository, digest, nil)
				if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "too slowly: it may pause for 30s") {
					t.Errorf("error %v, want one that says that the registry is too slow", err)
				}
				if took := time.Since(start); took < 90*time.Second || took > 92*time.Second {
					t.Errorf("given up after %v, want three times 30 s", took)
				}
			})
		})
	}
}
