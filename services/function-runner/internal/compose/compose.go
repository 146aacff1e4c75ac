// Package compose puts the services together in one process.
package compose

import (
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// Parts returns the services that s enables, calling each other in the process.
// Registries are only asked if functions may run in pods: local binaries need none.
func Parts(s settings.Settings, frame program.Frame) ([]serve.Part, error) {
	for _, name := range s.Waiting {
		frame.Telemetry.Log.Warn("this flag changes nothing in this version: functions do not run in pods yet", "flag", name)
	}
	var services gateway.Services
	var parts []serve.Part
	if s.Gateway.Enabled(gateway.RuntimePod) {
		resolver, err := imageresolver.NewResolver(s.ImageResolver, frame)
		if err != nil {
			return nil, err
		}
		services.ImageResolver = resolver
		parts = append(parts, serve.Part{Tasks: resolver.Tasks()})
	}
	front, err := gateway.New(s.Gateway, services, frame)
	if err != nil {
		return nil, err
	}
	return append([]serve.Part{front}, parts...), nil
}
