// Package compose puts the services together in one process.
package compose

import (
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

// Parts returns the services that s enables, calling each other in the process.
// Registries and Kubernetes are only asked if functions may run in pods: local binaries
// need neither, and are served whatever those say.
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
		services.ImageResolver, services.PodManager = resolver, manager
		// Pods are managed until the last evaluation has ended, and registries asked.
		parts = append(parts, unhurried(manager.Part()), serve.Part{Tasks: resolver.Tasks()})
	}
	front, err := gateway.New(s.Gateway, services, frame)
	if err != nil {
		return nil, err
	}
	return append([]serve.Part{front}, parts...), nil
}

// unhurried is a part for which nobody waits before the process serves. Local binaries
// serve whatever Kubernetes says; whoever wants a pod waits for it there.
func unhurried(part serve.Part) serve.Part {
	part.Ready = nil
	return part
}
