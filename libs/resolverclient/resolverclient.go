// SPDX-License-Identifier: Apache-2.0

// Package resolverclient contains a client of the image-resolver, the service that resolves image names by queries
// to registries. While the image-resolver is unavailable, the client returns the last answers.
package resolverclient

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/metric"
	"google.golang.org/protobuf/proto"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// maxBytes is the memory limit for the stored lists of tags. A second limit of the same size applies to the stored
// images, which need about 3 KiB each.
const maxBytes = 16 << 20

// Client calls an image-resolver in another process. Each error that it returns has a fault.Class. Callers must not
// change a returned answer, because several callers share it. Client does not send the field refresh of a request,
// because its callers do not set it.
type Client struct {
	tags   *lastAnswers[string, *imageresolverv1.ListTagsResponse]
	images *lastAnswers[imageKey, *imageresolverv1.ResolveImageResponse]
}

type imageKey struct{ image, constraint string }

// New returns a Client that sends its queries with the given RPC client. The argument hangs is a function that reports
// whether the image-resolver currently leaves calls unanswered, such as the method Hangs of an rpcclient.Client.
func New(
	client imageresolverv1connect.ImageResolverServiceClient, hangs func(context.Context) bool,
	meters metric.MeterProvider,
) *Client {
	askTags := func(ctx context.Context, repository string) (*imageresolverv1.ListTagsResponse, error) {
		resp, err := client.ListTags(ctx, &imageresolverv1.ListTagsRequest{Repository: repository})
		return resp, rpcfault.FromConnect(err)
	}
	tagsBytes := func(repository string, resp *imageresolverv1.ListTagsResponse) int64 {
		const text = 32 // bytes for a string's header and for rounding by the allocator
		return int64(len(repository) + proto.Size(resp) + text*len(resp.GetTags()))
	}
	askImage := func(ctx context.Context, k imageKey) (*imageresolverv1.ResolveImageResponse, error) {
		req := &imageresolverv1.ResolveImageRequest{Image: k.image, TagConstraint: k.constraint}
		resp, err := client.ResolveImage(ctx, req)
		return resp, rpcfault.FromConnect(err)
	}
	imageBytes := func(k imageKey, resp *imageresolverv1.ResolveImageResponse) int64 {
		return int64(len(k.image) + len(k.constraint) + 2*proto.Size(resp))
	}
	counter := telemetry.Must(meters.Meter("cache").Int64Counter("fn.stale.answers",
		metric.WithDescription("Old answers that were used because the image-resolver did not answer: tags or images. "+
			"Labels: kind.")))
	return &Client{
		tags:   newLastAnswers(askTags, hangs, tagsBytes, counter, "tags"),
		images: newLastAnswers(askImage, hangs, imageBytes, counter, "images"),
	}
}

// ListTags implements imageresolverv1connect.ImageResolverServiceClient. It returns the tags of a repository.
func (c *Client) ListTags(
	ctx context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	return c.tags.get(ctx, req.GetRepository())
}

// ResolveImage implements imageresolverv1connect.ImageResolverServiceClient. If the request contains a digest, it
// returns a stored answer without a query, because the image with a digest never changes.
func (c *Client) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	key := imageKey{req.GetImage(), req.GetTagConstraint()}
	if known := c.images.known(key); known != nil && strings.Contains(key.image, "@") {
		return known.value, nil
	}
	return c.images.get(ctx, key)
}
