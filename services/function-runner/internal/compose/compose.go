// SPDX-License-Identifier: Apache-2.0

// Package compose combines the gateway, the image-resolver and the pod-manager in a single process, the program
// function-runner. These services call each other directly, not over the network.
package compose

import (
	"context"
	"errors"
	"net"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

// Components creates the services that the settings require. It creates the image-resolver only if functions may run in
// pods or sandboxes, and the pod-manager only if functions may run in pods. Local binaries need neither registries nor
// Kubernetes.
func Components(ctx context.Context, s settings.Settings, frame servermain.Frame) ([]serve.Component, error) {
	sandboxes, err := gateway.FindSandboxes(ctx, s.Gateway, frame)
	if err != nil {
		return nil, err
	}
	if sandboxes != nil && frame.Identity == nil && !onLoopback(s.Gateway.Address) {
		frame.Telemetry.Log.Warn("sandboxes open to the network: anyone who reaches the port may run any image here "+
			"(set FNR_ADDRESS to an address on loopback, or use mutual TLS)", "address", s.Gateway.Address)
	}
	services := gateway.Services{Sandboxes: sandboxes}
	components, err := addServices(s, &services, frame)
	if err != nil {
		return nil, errors.Join(err, sandboxes.Close())
	}
	front, err := gateway.New(s.Gateway, services, frame)
	if err != nil {
		return nil, errors.Join(err, sandboxes.Close())
	}
	return append([]serve.Component{front}, components...), nil
}

// onLoopback reports whether an address can be reached only from this machine. It returns false for all names except
// localhost, because a name may resolve to any address.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// addServices creates the services that functions in pods and sandboxes need, and connects the gateway to them. The
// returned components must stop after the gateway, because running evaluations still use them.
func addServices(
	s settings.Settings, services *gateway.Services, frame servermain.Frame,
) (components []serve.Component, err error) {
	pods := s.Gateway.Enabled(gateway.RuntimePod)
	if !pods && services.Sandboxes == nil {
		return nil, nil
	}
	resolver, err := imageresolver.NewResolver(s.ImageResolver, frame)
	if err != nil {
		return nil, err
	}
	services.ImageResolver = resolver
	if pods {
		component, err := addPods(s, services, resolver, frame)
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	if services.Sandboxes != nil {
		component, err := addImages(s, services, resolver, frame)
		if err != nil {
			return nil, err
		}
		components = append(components, component)
	}
	return append(components, serve.Component{Tasks: resolver.Tasks()}), nil
}

// addPods creates the pod-manager, and connects the gateway to it.
func addPods(
	s settings.Settings, services *gateway.Services, resolver *imageresolver.Resolver, frame servermain.Frame,
) (serve.Component, error) {
	manager, err := podmanager.NewManager(s.PodManager, resolver, frame)
	if err != nil {
		return serve.Component{}, err
	}
	services.PodManager = manager
	services.Binaries = manager.Binaries
	services.PodIdentity = manager.Identity
	component := manager.Component()
	// Without the pod-manager's readiness check, function-runner is ready even before it reaches Kubernetes. Local
	// binaries do not need Kubernetes, and requests for pods wait in the pod-manager.
	component.Ready = nil
	return component, nil
}

// addImages opens the image store, from which sandboxes read their files, and connects the gateway to it. The
// returned component closes the store when the program stops.
func addImages(
	s settings.Settings, services *gateway.Services, resolver *imageresolver.Resolver, frame servermain.Frame,
) (serve.Component, error) {
	store, err := imageresolver.OpenStore(s.Store(), resolver, localrunner.Group(), frame.Telemetry.Log)
	if err != nil {
		return serve.Component{}, err
	}
	services.Images = store
	return serve.Component{Tasks: []serve.Task{func(ctx context.Context) error {
		<-ctx.Done()
		store.Close()
		return nil
	}}}, nil
}
