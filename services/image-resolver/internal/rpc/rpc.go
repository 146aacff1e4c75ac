// SPDX-License-Identifier: Apache-2.0

// Package rpc serves a resolver as the ImageResolverService.
package rpc

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/krm-function-runner/function-runner/libs/fault"
	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/oci"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/resolver"
)

// Handler serves a resolver.
type Handler struct {
	Resolver *resolver.Resolver
	Tracer   trace.Tracer
}

// ResolveImage resolves an image.
func (h *Handler) ResolveImage(
	ctx context.Context, req *imageresolverv1.ResolveImageRequest,
) (*imageresolverv1.ResolveImageResponse, error) {
	ctx, span := h.Tracer.Start(ctx, "fn.resolve",
		trace.WithAttributes(attribute.String("container.image.name", req.GetImage())))
	defer span.End()
	result, err := h.Resolver.Resolve(ctx, request(req))
	if err != nil {
		span.SetStatus(codes.Error, fault.Of(err).String())
		return nil, err
	}
	return response(result), nil
}

// Cached returns the answer of ResolveImage if it is available without waiting.
func (h *Handler) Cached(req *imageresolverv1.ResolveImageRequest) (*imageresolverv1.ResolveImageResponse, bool) {
	result, ok := h.Resolver.Cached(context.Background(), request(req))
	if !ok {
		return nil, false
	}
	return response(result), true
}

func request(req *imageresolverv1.ResolveImageRequest) resolver.Request {
	return resolver.Request{
		Image: req.GetImage(), Constraint: req.GetTagConstraint(), Platform: platform(req.GetPlatform()),
		Renew: req.GetRefresh(),
	}
}

// ListTags lists tags.
func (h *Handler) ListTags(
	ctx context.Context, req *imageresolverv1.ListTagsRequest,
) (*imageresolverv1.ListTagsResponse, error) {
	tags, err := h.Resolver.Tags(ctx, req.GetRepository(), req.GetConstraint())
	if err != nil {
		return nil, err
	}
	return &imageresolverv1.ListTagsResponse{Tags: tags}, nil
}

func platform(p *imageresolverv1.Platform) oci.Platform {
	return oci.Platform{OS: p.GetOs(), Architecture: p.GetArchitecture(), Variant: p.GetVariant()}
}

func response(r resolver.Result) *imageresolverv1.ResolveImageResponse {
	image := r.Image
	return &imageresolverv1.ResolveImageResponse{
		Reference:   r.Reference,
		Digest:      image.Digest,
		IndexDigest: image.IndexDigest,
		Command:     image.Command(),
		Entrypoint:  image.Entrypoint,
		Cmd:         image.Cmd,
		Env:         image.Env,
		WorkingDir:  image.WorkingDir,
		User:        image.User,
		Platform: &imageresolverv1.Platform{
			Os:           image.Platform.OS,
			Architecture: image.Platform.Architecture,
			Variant:      image.Platform.Variant,
		},
		Labels:          image.Labels,
		SizeBytes:       image.Size,
		PullCredentials: image.PullCredentials,
		Age:             durationpb.New(r.Age),
	}
}
