// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/resolverclient"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/servermain"
)

// connect returns a client of the image-resolver service. The client stays open until the process exits.
func (c *Config) connect(frame servermain.Frame) (*resolverclient.Client, error) {
	if c.ImageResolver == "" {
		return nil, fault.New(fault.Invalid, "no image-resolver is named: set FNR_IMAGE_RESOLVER")
	}
	client, err := rpcclient.New(c.ImageResolver, frame.Identity.ClientOfSibling("image-resolver"), frame.Telemetry)
	if err != nil {
		return nil, err
	}
	client.Options = append(client.Options, client.Balanced())
	resolver := imageresolverv1connect.NewImageResolverServiceClient(client.HTTP, c.ImageResolver, client.Options...)
	return resolverclient.New(resolver, frame.Telemetry.Meters)
}
