// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/binaries"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/resolverclient"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/replicas"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/sandboxeval"
)

// Services contains the services that a gateway calls, over the network or in the same process.
type Services struct {
	// ImageResolver resolves image names to digests, and lists the tags of images in registries. If it is nil, a version
	// constraint such as ">=1.2" can select only tags of images that run as local binaries.
	ImageResolver imageresolverv1connect.ImageResolverServiceClient
	// PodManager leases function pods. If it is nil, the gateway runs no functions in pods.
	PodManager lease.Manager
	// PodIdentity is the certificate that the gateway presents to function pods. If it is nil, the gateway presents
	// the program's own certificate.
	PodIdentity *mtls.Identity
	// Binaries lists the local binaries that FunctionConfig objects (a custom resource of Porch) define. It is nil if the
	// gateway does not read FunctionConfigs.
	Binaries binaries.Source
	// Sandboxes starts functions in sandboxes on this machine. It is nil if sandboxes are disabled, or do not work on
	// this machine.
	Sandboxes *Sandboxes
	Images    sandboxeval.Images

	clients []*rpcclient.Client
}

// Close closes the connections to other services.
func (s Services) Close() {
	for _, c := range s.clients {
		c.Close()
	}
}

// Connect returns clients of the image-resolver and the pod-manager, if cfg contains their addresses. Callers must
// close the returned Services.
func Connect(cfg Config, frame servermain.Frame) (Services, error) {
	var s Services
	if cfg.ImageResolver != "" {
		client, err := s.newClient(cfg.ImageResolver, "image-resolver", frame)
		if err != nil {
			return s, err
		}
		options := slices.Concat(client.Options, []connect.ClientOption{client.Balanced()})
		resolver := imageresolverv1connect.NewImageResolverServiceClient(client.HTTP, cfg.ImageResolver, options...)
		s.ImageResolver = resolverclient.New(resolver, client.Hangs, frame.Telemetry.Meters)
	}
	if cfg.PodManager != "" && cfg.Enabled(RuntimePod) {
		client, err := s.newClient(cfg.PodManager, "pod-manager", frame)
		if err != nil {
			return s, err
		}
		s.PodManager = replicas.New(client, cfg.PodManager)
		s.Binaries = binaries.NewClient(client.HTTP, cfg.PodManager, client.Options...)
	}
	return s, nil
}

// newClient returns a client of the service at address. name is the service's name in its TLS certificate.
// [Services.Close] closes the client.
func (s *Services) newClient(address, name string, frame servermain.Frame) (*rpcclient.Client, error) {
	client, err := rpcclient.New(address, frame.Identity.ClientOfSibling(name), frame.Telemetry)
	s.clients = append(s.clients, client)
	return client, err
}
