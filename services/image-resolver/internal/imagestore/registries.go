// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// answerTimeout bounds the total time to read an image's manifest and configuration from the registry and its mirrors.
const answerTimeout = time.Minute

// Registries is a [Source] that reads images from their registries. It uses the credentials, certificate
// authorities and mirrors of Client.
type Registries struct {
	Client *registry.Client
	// Timeout bounds the time to read an image's manifest and configuration. Zero means a minute.
	Timeout time.Duration
}

var _ Source = Registries{}

// Image implements Source.
func (r Registries) Image(
	ctx context.Context, repository, digest string,
) (manifest *oci.Manifest, config oci.RootFS, err error) {
	timeout := cmp.Or(r.Timeout, answerTimeout)
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = r.Client.With(bounded, repository, func(ctx context.Context, s *registry.Session) (err error) {
		if manifest, err = s.Manifest(ctx, digest); err != nil {
			return err
		}
		if manifest.IsIndex() {
			return fault.New(fault.Precondition, "%s is an index of several images: name one of them", digest)
		}
		raw, err := s.Blob(ctx, manifest.Config)
		if err != nil {
			return err
		}
		config, err = oci.ParseRootFS(manifest, raw)
		return err
	})
	if bounded.Err() != nil && ctx.Err() == nil {
		err = fault.New(fault.Unavailable, "the manifest and configuration of the image have not come in %v: %w",
			timeout, err)
	}
	return manifest, config, err
}

// Layer implements Source.
func (r Registries) Layer(ctx context.Context, repository, digest string, read ReadLayer) error {
	return r.Client.With(ctx, repository, func(ctx context.Context, s *registry.Session) error {
		session, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		err := s.Layer(session, digest, func(content io.Reader) error { return read(content, stop) })
		if session.Err() != nil && ctx.Err() == nil {
			return context.Cause(session) // With then tries the next mirror, or the registry
		}
		return err
	})
}
