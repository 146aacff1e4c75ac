// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/cache"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// maxDigestBytes bounds the digests that are kept of images.
const maxDigestBytes = 4 << 20

// Resolver is the part of the image-resolver that is needed.
type Resolver interface {
	ResolveImage(ctx context.Context, req *imageresolverv1.ResolveImageRequest) (
		*imageresolverv1.ResolveImageResponse, error)
}

// Ask returns Digests that ask an image-resolver each time, which remembers answers itself.
func Ask(resolver Resolver) Digests {
	return func(ctx context.Context, image imagename.Name) (string, error) {
		return resolve(ctx, resolver, image.String())
	}
}

func resolve(ctx context.Context, resolver Resolver, image string) (string, error) {
	resp, err := resolver.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image})
	return resp.GetDigest(), rpcfault.FromConnect(err)
}

// RemoteDigests are the digests that an image-resolver in another process knows. Use [NewRemoteDigests].
type RemoteDigests struct{ answers *cache.Remote[string, string] }

// NewRemoteDigests returns an empty cache of digests. Its fetches end with [RemoteDigests.Run]. stale is called for
// each digest that is used although its time is over; nil for nothing.
func NewRemoteDigests(resolver Resolver, stale func(context.Context)) *RemoteDigests {
	return &RemoteDigests{answers: cache.NewRemote(cache.RemoteConfig[string, string]{
		Fetch: func(ctx context.Context, image string) (string, error) { return resolve(ctx, resolver, image) },
		Size:  func(image, digest string) int64 { return int64(len(image) + len(digest) + 2*16) },
		Stale: stale, MaxBytes: maxDigestBytes,
	})}
}

// Digest returns the digest of an image. It is of type Digests.
func (d *RemoteDigests) Digest(ctx context.Context, image imagename.Name) (string, error) {
	return d.answers.Get(ctx, image.String())
}

// Run waits for ctx to end, then ends all fetches.
func (d *RemoteDigests) Run(ctx context.Context) error { return d.answers.Run(ctx) }
