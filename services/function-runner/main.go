// SPDX-License-Identifier: Apache-2.0

// Command function-runner runs the gateway, the image-resolver and the pod-manager in one process. It can replace
// Porch's function runner, because it accepts the same flags.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/compose"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

func main() {
	servermain.Slacken()
	servermain.Begin()
	s, err := settings.Load(os.Args[1:], os.Stdout)
	if errors.Is(err, settings.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		os.Exit(servermain.RejectConfig("function-runner", err))
	}
	s.PodManager.PodEnv = podmanager.PodEnv(os.Environ())
	start := func(ctx context.Context, frame servermain.Frame) ([]serve.Component, error) {
		return compose.Components(ctx, s, frame)
	}
	os.Exit(servermain.Main("function-runner", s.Settings, start))
}
