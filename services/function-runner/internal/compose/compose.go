// SPDX-License-Identifier: Apache-2.0

// Package compose runs the services together in one process.
package compose

import (
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

// Parts returns the services that s enables, which call each other within the process. They call
// registries and Kubernetes only if functions may run in pods: local binaries need neither, and are
// served without them.
func Parts(s settings.Settings, frame program.Frame) ([]serve.Part, error) {
	var services gateway.Services
	var parts []serve.Part
	if s.Gateway.Enabled(gateway.RuntimePod) {
		resolver, err := imageresolver.NewResolver(s.ImageResolver, frame)
		if err != nil {
			return nil, err
		}
		manager, err := podmanager.NewManager(s.PodManager, resolver, frame)
		if err != nil {
			return nil, err
		}
		services.ImageResolver, services.PodManager, services.Binaries = resolver, manager, manager.Binaries
		// Pods are managed, and registries are called, until the last evaluation has ended.
		parts = append(parts, startsReady(manager.Part()), serve.Part{Tasks: resolver.Tasks()})
	}
	front, err := gateway.New(s.Gateway, services, frame)
	if err != nil {
		return nil, err
	}
	return append([]serve.Part{front}, parts...), nil
}

// startsReady returns a component that the process does not wait for before it serves. Local
// binaries are served without Kubernetes; requests that need a pod wait for Kubernetes in the
// pod-manager.
func startsReady(part serve.Part) serve.Part {
	part.Ready = nil
	return part
}
