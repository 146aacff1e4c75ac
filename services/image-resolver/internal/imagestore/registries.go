// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"io"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/registry"
)

// Registries are the source of images that registries have, with the credentials, authorities and
// mirrors of a client.
type Registries struct{ Client *registry.Client }

var _ Source = Registries{}

// Image implements Source.
func (r Registries) Image(
	ctx context.Context, repository, digest string,
) (manifest *oci.Manifest, config oci.RootFS, err error) {
	err = r.Client.With(ctx, repository, func(ctx context.Context, s *registry.Session) (err error) {
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
	return manifest, config, err
}

// Layer implements Source.
func (r Registries) Layer(ctx context.Context, repository, digest string, read func(io.Reader) error) error {
	return r.Client.With(ctx, repository, func(ctx context.Context, s *registry.Session) error {
		return s.Layer(ctx, digest, read)
	})
}
