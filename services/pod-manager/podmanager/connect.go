// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/images"
)

// Connect returns a client of the image-resolver that cfg names.
func Connect(cfg Config, frame program.Frame) (Resolver, error) {
	if cfg.ImageResolver == "" {
		return nil, fault.New(fault.Invalid, "no image-resolver is named: set FNR_IMAGE_RESOLVER")
	}
	secure, err := frame.Identity.ClientOf(cfg.ImageResolverID)
	if err != nil {
		return nil, err
	}
	client, err := rpcclient.New(cfg.ImageResolver, secure, frame.Telemetry)
	if err != nil {
		return nil, err
	}
	client.Options = append(client.Options, client.Balanced())
	return resolver{imageresolverv1connect.NewImageResolverServiceClient(
		client.HTTP, cfg.ImageResolver, client.Options...)}, nil
}

// resolver is an image-resolver elsewhere.
type resolver struct {
	client imageresolverv1connect.ImageResolverServiceClient
}

// ResolveImage has errors with fault classes.
func (r resolver) ResolveImage(ctx context.Context, req *images.Request) (*images.Image, error) {
	image, err := r.client.ResolveImage(ctx, req)
	return image, rpcfault.FromConnect(err)
}
