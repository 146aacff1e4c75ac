// SPDX-License-Identifier: Apache-2.0

// Command pod-manager lends function pods.
package main

import (
	"context"
	"os"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

// settings are everything that the environment sets.
type settings struct {
	podmanager.Config
	program.Settings
}

// Validate checks all settings.
func (s *settings) Validate() error { return s.ValidateWith(&s.Config) }

func main() {
	program.Begin()
	var s settings
	if err := config.Load(&s); err != nil {
		os.Exit(program.Refuse("pod-manager", err))
	}
	s.PodEnv = podmanager.PodEnv(os.Environ())
	os.Exit(program.Main("pod-manager", s.Settings, func(_ context.Context, frame program.Frame) ([]serve.Part, error) {
		resolver, err := podmanager.Connect(s.Config, frame) // open until the process ends
		if err != nil {
			return nil, err
		}
		part, err := podmanager.New(s.Config, resolver, frame)
		return []serve.Part{part}, err
	}))
}
