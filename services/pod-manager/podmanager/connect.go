// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"

	"github.com/krm-function-runner/function-runner/libs/cache"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/resolverclient"
)

// connect returns a client of the image-resolver. The client stays open until the process exits.
func (c *Config) connect(frame servermain.Frame) (*resolverclient.Last, error) {
	if c.ImageResolver == "" {
		return nil, fault.New(fault.Invalid, "no image-resolver is named: set FNR_IMAGE_RESOLVER")
	}
	client, err := rpcclient.New(c.ImageResolver, frame.Identity.ClientOfSibling("image-resolver"), frame.Telemetry)
	if err != nil {
		return nil, err
	}
	stale, err := cache.StaleCounter(frame.Telemetry.Meters, "images")
	if err != nil {
		return nil, err
	}
	client.Options = append(client.Options, client.Balanced())
	return resolverclient.New(resolver{imageresolverv1connect.NewImageResolverServiceClient(
		client.HTTP, c.ImageResolver, client.Options...)}, stale), nil
}

// resolver calls an image-resolver in another process.
type resolver struct {
	client imageresolverv1connect.ImageResolverServiceClient
}

// ResolveImage returns errors with fault classes.
func (r resolver) ResolveImage(ctx context.Context, req *resolverclient.Request) (*resolverclient.Image, error) {
	image, err := r.client.ResolveImage(ctx, req)
	return image, rpcfault.FromConnect(err)
}
