// SPDX-License-Identifier: Apache-2.0

// Package images asks an image-resolver in another process, and uses its last answers while it is away.
package images

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/cache"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

// maxBytes bounds the answers that are kept, of about 3 KiB each.
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

// Last asks a Resolver, and keeps its last answers. Use [New].
type Last struct{ last *cache.Last[key, *Image] }

type key struct{ image, tagConstraint string }

// New returns a Last without answers. stale is called for each earlier answer that is used; it may be nil.
func New(resolver Resolver, stale func(context.Context)) *Last {
	return &Last{cache.NewLast(cache.LastConfig[key, *Image]{
		Ask: func(ctx context.Context, k key) (*Image, error) {
			return resolver.ResolveImage(ctx, &Request{Image: k.image, TagConstraint: k.tagConstraint})
		},
		Size:     func(k key, image *Image) int64 { return int64(len(k.image) + 2*proto.Size(image)) },
		MaxBytes: maxBytes, Stale: stale,
	})}
}

// Cached returns what an image is if the image-resolver need not be asked: what a digest stands for does not change.
func (l *Last) Cached(req *Request) (*Image, bool) {
	if !strings.Contains(req.GetImage(), "@") {
		return nil, false
	}
	return l.last.Known(keyOf(req))
}

// ResolveImage returns what an image is. Answers are shared: callers must not change them. Errors are those of the
// image-resolver and of ctx.
func (l *Last) ResolveImage(ctx context.Context, req *Request) (*Image, error) {
	if image, ok := l.Cached(req); ok {
		return image, nil
	}
	return l.last.Get(ctx, keyOf(req))
}

func keyOf(req *Request) key { return key{req.GetImage(), req.GetTagConstraint()} }
