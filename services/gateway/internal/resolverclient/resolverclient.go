// SPDX-License-Identifier: Apache-2.0

// Package resolverclient calls an image-resolver. While the image-resolver is unavailable, it returns the last
// answers from its cache.
package resolverclient

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"google.golang.org/protobuf/proto"

	"github.com/krm-function-runner/function-runner/libs/cache"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/imagename"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
)

const (
	// maxTagBytes limits the memory of cached lists of tags, and maxImageBytes the memory of cached image answers.
	maxTagBytes   = 16 << 20
	maxImageBytes = 4 << 20
)

// Resolver is an image-resolver. Its errors have fault classes. Callers must not change its answers, because the
// cache shares them between callers.
type Resolver = imageresolverv1connect.ImageResolverServiceClient

// Remote is an image-resolver in another process. It ignores all fields of a request except the repository or the
// image, which are the only fields that the gateway sets.
type Remote struct {
	tags   *cache.Last[string, *imageresolverv1.ListTagsResponse]
	images *cache.Last[string, *imageresolverv1.ResolveImageResponse]
}

// NewRemote returns a Remote that calls client.
func NewRemote(client imageresolverv1connect.ImageResolverServiceClient, meters metric.MeterProvider) (*Remote, error) {
	staleTags, err := cache.StaleCounter(meters, "tags")
	if err != nil {
		return nil, err
	}
	staleDigests, err := cache.StaleCounter(meters, "digests")
	if err != nil {
		return nil, err
	}
	return &Remote{
		tags: cache.NewLast(cache.LastConfig[string, *imageresolverv1.ListTagsResponse]{
			Ask: func(ctx context.Context, repository string) (*imageresolverv1.ListTagsResponse, error) {
				resp, err := client.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
				return resp, rpcfault.FromConnect(err)
			},
			Size: func(repository string, resp *imageresolverv1.ListTagsResponse) int64 {
				const text = 32 // bytes of a string's header, and of rounding by the allocator
				return int64(len(repository) + proto.Size(resp) + text*len(resp.GetTags()))
			},
			MaxBytes: maxTagBytes, Stale: staleTags,
		}),
		images: cache.NewLast(cache.LastConfig[string, *imageresolverv1.ResolveImageResponse]{
			Ask: func(ctx context.Context, image string) (*imageresolverv1.ResolveImageResponse, error) {
				resp, err := client.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image})
				return resp, rpcfault.FromConnect(err)
			},
			Size: func(image string, resp *imageresolverv1.ResolveImageResponse) int64 {
				return int64(len(image) + 2*proto.Size(resp))
			},
			MaxBytes: maxImageBytes, Stale: staleDigests,
		}),
	}, nil
}

// ListTags implements Resolver.
func (r *Remote) ListTags(
	ctx context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	return r.tags.Get(ctx, req.GetRepository())
}

// ResolveImage implements Resolver.
func (r *Remote) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	return r.images.Get(ctx, req.GetImage())
}

// TagSource is a nameresolver.TagSource that lists the tags in registries.
type TagSource struct{ Resolver Resolver }

// Tags implements nameresolver.TagSource. If the registry does not contain the repository, it returns the registry's error.
func (s TagSource) Tags(ctx context.Context, repository string) (tags []string, known bool, err error) {
	resp, err := s.Resolver.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
	return resp.GetTags(), err == nil, err
}

// Digest returns the digest to which the resolver resolves an image.
func Digest(ctx context.Context, resolver Resolver, image imagename.Name) (string, error) {
	resp, err := resolver.ResolveImage(ctx, &imageresolverv1.ResolveImageRequest{Image: image.String()})
	return resp.GetDigest(), err
}
