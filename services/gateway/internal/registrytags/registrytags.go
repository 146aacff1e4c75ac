// SPDX-License-Identifier: Apache-2.0

// Package registrytags returns the tags that registries have, as the image-resolver knows them.
package registrytags

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/cache"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

// maxBytes bounds the tags and repositories that are kept.
const maxBytes = 16 << 20

// Lister is the part of the image-resolver's client that is needed.
type Lister interface {
	ListTags(ctx context.Context, req *imageresolverv1.ListTagsRequest) (*imageresolverv1.ListTagsResponse, error)
}

// Source is a naming.TagSource that asks a Lister each time.
type Source struct{ Lister Lister }

// Tags implements naming.TagSource: a repository that its registry does not know is an
// error. The answer is shared: it must not be changed.
func (s Source) Tags(ctx context.Context, repository string) (tags []string, known bool, err error) {
	resp, err := s.Lister.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
	return resp.GetTags(), err == nil, rpcfault.FromConnect(err)
}

// Cache is a Lister that keeps the answers of an image-resolver in another process. Use
// [NewCache].
type Cache struct {
	tags *cache.Remote[string, []string]
}

// NewCache returns an empty cache. Its fetches end with [Cache.Run]. stale is called for each answer
// that is used although its time is over; nil for nothing.
func NewCache(lister Lister, stale func(context.Context)) *Cache {
	return &Cache{tags: cache.NewRemote(cache.RemoteConfig[string, []string]{
		Fetch: func(ctx context.Context, repository string) ([]string, error) {
			tags, _, err := Source{lister}.Tags(ctx, repository)
			return tags, err
		},
		Size: size, MaxBytes: maxBytes, Stale: stale,
	})}
}

// size returns the memory that a repository and its tags need, in bytes.
func size(repository string, tags []string) int64 {
	const header = 16 // of a string, and what its content is rounded up to
	n := len(repository) + header
	for _, tag := range tags {
		n += len(tag) + 2*header
	}
	return int64(n)
}

// ListTags implements Lister. It knows no constraints.
func (c *Cache) ListTags(
	ctx context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	tags, err := c.tags.Get(ctx, req.GetRepository())
	if err != nil {
		return nil, err
	}
	return &imageresolverv1.ListTagsResponse{Tags: tags}, nil
}

// Run waits for ctx to end, then ends all fetches.
func (c *Cache) Run(ctx context.Context) error { return c.tags.Run(ctx) }
