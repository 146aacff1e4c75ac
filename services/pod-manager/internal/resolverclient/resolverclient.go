// SPDX-License-Identifier: Apache-2.0

// Package resolverclient calls the image-resolver, and uses its last answers while the image-resolver is unavailable.
package resolverclient

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/cache"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
)

// maxBytes limits the memory of stored answers. An answer uses about 3 KiB.
const maxBytes = 32 << 20

type (
	// Request is a request to the image-resolver.
	Request = imageresolverv1.ResolveImageRequest
	// Image is a resolved image.
	Image = imageresolverv1.ResolveImageResponse
)

// Resolver is the part of the image-resolver's client that [Last] requires.
type Resolver interface {
	// ResolveImage returns errors with fault classes.
	ResolveImage(ctx context.Context, req *Request) (*Image, error)
}

// Last calls a Resolver, and stores the last answer for each request. Use [New].
type Last struct{ last *cache.Last[key, *Image] }

type key struct{ image, tagConstraint string }

// New returns a Last without stored answers. It calls stale each time it returns a stored answer because the resolver
// is unavailable. stale may be nil.
func New(resolver Resolver, stale func(context.Context)) *Last {
	return &Last{cache.NewLast(cache.LastConfig[key, *Image]{
		Ask: func(ctx context.Context, k key) (*Image, error) {
			return resolver.ResolveImage(ctx, &Request{Image: k.image, TagConstraint: k.tagConstraint})
		},
		Size:     func(k key, image *Image) int64 { return int64(len(k.image) + 2*proto.Size(image)) },
		MaxBytes: maxBytes, Stale: stale,
	})}
}

// Cached returns the stored image of a request with a digest, because the image of a digest never changes. It sends
// no request.
func (l *Last) Cached(req *Request) (*Image, bool) {
	if !strings.Contains(req.GetImage(), "@") {
		return nil, false
	}
	return l.last.Known(keyOf(req))
}

// ResolveImage returns an image. Callers must not change it. Errors are errors of the image-resolver or of ctx.
func (l *Last) ResolveImage(ctx context.Context, req *Request) (*Image, error) {
	if image, ok := l.Cached(req); ok {
		return image, nil
	}
	return l.last.Get(ctx, keyOf(req))
}

func keyOf(req *Request) key { return key{req.GetImage(), req.GetTagConstraint()} }
