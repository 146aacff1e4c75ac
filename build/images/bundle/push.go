// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push copies all images, and what is known about them, to repositories below a prefix, such as
// registry.example/fnr. Digests stay as they are. It writes the name of each image by digest.
func (b Bundle) Push(ctx context.Context, repository string, out io.Writer, options ...remote.Option) error {
	entries, all, err := b.entries()
	if err != nil {
		return err
	}
	options = append(options, remote.WithContext(ctx))
	for _, e := range entries {
		to, err := name.NewTag(repository + "/" + e.name)
		if err != nil {
			return fmt.Errorf("name %s in %s: %w", e.name, repository, err)
		}
		if err := e.push(to, all, options); err != nil {
			return fmt.Errorf("push %s: %w", to, err)
		}
		if e.descriptor.MediaType.IsImage() {
			continue // it is about another one
		}
		if _, err := fmt.Fprintln(out, to.Context().Digest(e.descriptor.Digest.String())); err != nil {
			return err
		}
	}
	return nil
}

// push copies an image, or an index with its images.
func (e entry) push(to name.Tag, all v1.ImageIndex, options []remote.Option) error {
	if e.descriptor.MediaType.IsImage() {
		image, err := all.Image(e.descriptor.Digest)
		if err != nil {
			return err
		}
		return remote.Write(to, image, options...)
	}
	index, err := all.ImageIndex(e.descriptor.Digest)
	if err != nil {
		return err
	}
	return remote.WriteIndex(to, index, options...)
}
