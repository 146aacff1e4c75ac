// SPDX-License-Identifier: Apache-2.0

// Package images caches the answers of an image-resolver in another process.
package images

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/cache"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

// maxBytes bounds the images that are kept: ten thousand of a KiB each.
const maxBytes = 32 << 20

type (
	// Request is the question to an image-resolver.
	Request = imageresolverv1.ResolveImageRequest
	// Image is its answer.
	Image = imageresolverv1.ResolveImageResponse
)

// Resolver is the part of the image-resolver's client that is needed.
type Resolver interface {
	// ResolveImage has errors with fault classes.
	ResolveImage(ctx context.Context, req *Request) (*Image, error)
}

// Cache keeps the answers of a Resolver. Use [New].
type Cache struct {
	answers *cache.Remote[key, *Image]
}

type key struct{ image, tagConstraint string }

// New returns an empty cache. Its fetches end with [Cache.Run]. stale is called for each answer that
// is used although its time is over; nil for nothing.
func New(resolver Resolver, stale func(context.Context)) *Cache {
	return &Cache{answers: cache.NewRemote(cache.RemoteConfig[key, *Image]{
		Fetch: func(ctx context.Context, k key) (*Image, error) {
			return resolver.ResolveImage(ctx, &Request{Image: k.image, TagConstraint: k.tagConstraint})
		},
		Size: size, MaxBytes: maxBytes, Stale: stale,
	})}
}

// size returns the memory that an answer needs, in bytes.
func size(k key, answer *Image) int64 {
	const decoded = 3 // times as large as encoded: headers of strings, and the message itself
	return int64(len(k.image) + len(k.tagConstraint) + decoded*proto.Size(answer))
}

// Cached returns what is known of an image if ResolveImage would not wait. It is shared: it
// must not be changed.
func (c *Cache) Cached(req *Request) (*Image, bool) {
	return c.answers.Cached(keyOf(req))
}

// ResolveImage returns what an image is, and waits for the image-resolver unless that answered
// a short time ago, or is away. The answer is shared: it must not be changed. Errors are those
// of the image-resolver and of ctx.
func (c *Cache) ResolveImage(ctx context.Context, req *Request) (*Image, error) {
	return c.answers.Get(ctx, keyOf(req))
}

func keyOf(req *Request) key {
	return key{req.GetImage(), req.GetTagConstraint()}
}

// Run waits for ctx to end, then ends all fetches.
func (c *Cache) Run(ctx context.Context) error { return c.answers.Run(ctx) }
