// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Registry is a client of an image registry. Concurrent pushes are only permitted without [Registry.WithMounts].
type Registry struct {
	Host      string
	Auth      authn.Authenticator
	Transport http.RoundTripper
	// Secure is true if connections to the registry must use TLS. If it is false, plain HTTP is permitted, too.
	Secure bool
	// layers maps the digest of each pushed layer to an image that contains it. It is nil without [Registry.WithMounts].
	layers map[v1.Hash]name.Reference
}

// WithMounts returns a Registry that uploads each layer only once. If a layer was already pushed to another
// repository, Push mounts the layer from there instead of uploading it again.
func (r Registry) WithMounts() Registry {
	r.layers = map[v1.Hash]name.Reference{}
	return r
}

// Push uploads an image. It returns false if the registry already has the same image under that name.
func (r Registry) Push(ctx context.Context, imageName string, image v1.Image) (pushed bool, err error) {
	reference, err := r.reference(imageName)
	if err != nil {
		return false, err
	}
	options := r.options(ctx)
	digest, err := image.Digest()
	if err != nil {
		return false, fmt.Errorf("push image %s: %w", imageName, err)
	}
	present, err := head(reference, options)
	if err != nil || present == digest {
		return false, err
	}
	image, err = r.mount(image, reference)
	if err != nil {
		return false, fmt.Errorf("push image %s: %w", imageName, err)
	}
	if err := remote.Write(reference, image, options...); err != nil {
		return false, fmt.Errorf("push image %s: %w", reference, err)
	}
	return true, nil
}

// mounting is an image whose layers can be mounted from other repositories of the registry, to avoid uploads.
type mounting struct {
	v1.Image
	layers []v1.Layer
}

func (m mounting) Layers() ([]v1.Layer, error) { return m.layers, nil }

// mount returns a copy of the image for a push. Layers that were already pushed to another repository are mounted
// from there instead of uploaded again. Without [Registry.WithMounts], mount returns the image unchanged.
func (r Registry) mount(image v1.Image, reference name.Reference) (v1.Image, error) {
	layers, err := image.Layers()
	if err != nil || r.layers == nil {
		return image, err
	}
	mounted := mounting{Image: image}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return nil, err
		}
		if from, ok := r.layers[digest]; ok {
			layer = &remote.MountableLayer{Layer: layer, Reference: from}
		} else {
			r.layers[digest] = reference
		}
		mounted.layers = append(mounted.layers, layer)
	}
	return mounted, nil
}

// Pull returns the named image. Its layers are downloaded only when they are read.
func (r Registry) Pull(ctx context.Context, imageName string) (v1.Image, error) {
	reference, err := r.reference(imageName)
	if err != nil {
		return nil, err
	}
	image, err := remote.Image(reference, r.options(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("pull image %s: %w", reference, err)
	}
	return image, nil
}

// head returns the digest of an image in the registry. The digest is zero if the image does not exist.
func head(reference name.Reference, options []remote.Option) (v1.Hash, error) {
	descriptor, err := remote.Head(reference, options...)
	var refused *transport.Error
	switch {
	case err == nil:
		return descriptor.Digest, nil
	case errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound:
		return v1.Hash{}, nil
	default:
		return v1.Hash{}, fmt.Errorf("look up image %s: %w", reference, err)
	}
}

// Same reports whether two tags of a repository exist and refer to the same image.
func (r Registry) Same(ctx context.Context, repository, tag, other string) (bool, error) {
	var digests [2]v1.Hash
	for i, tag := range []string{tag, other} {
		reference, err := r.reference(repository + ":" + tag)
		if err != nil {
			return false, err
		}
		if digests[i], err = head(reference, r.options(ctx)); err != nil {
			return false, err
		}
	}
	return digests[0] == digests[1] && digests[0] != v1.Hash{}, nil
}

func (r Registry) reference(imageName string) (name.Reference, error) {
	var options []name.Option
	if !r.Secure {
		options = append(options, name.Insecure)
	}
	reference, err := name.ParseReference(r.Host+"/"+imageName, options...)
	if err != nil {
		return nil, fmt.Errorf("name image %s: %w", imageName, err)
	}
	return reference, nil
}

func (r Registry) options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuth(r.Auth), remote.WithTransport(r.Transport)}
}
