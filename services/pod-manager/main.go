// SPDX-License-Identifier: Apache-2.0

// Command pod-manager maintains the Kubernetes pods that run KRM functions. It grants leases, which permit callers to
// send evaluations to these pods.
package main

import (
	"context"
	"os"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

// settings contains the settings of the program, which it reads from environment variables.
type settings struct {
	podmanager.Config
	servermain.Settings
}

// Validate checks all settings.
func (s *settings) Validate() error { return s.ValidateWith(&s.Config) }

func main() {
	servermain.Slacken()
	servermain.Begin()
	var s settings
	servermain.Load("pod-manager", &s)
	s.PodEnv = podmanager.PodEnv(os.Environ())
	build := func(_ context.Context, frame servermain.Frame) ([]serve.Component, error) {
		return podmanager.New(s.Config, frame)
	}
	os.Exit(servermain.Main("pod-manager", s.Settings, build))
}
