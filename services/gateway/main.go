// SPDX-License-Identifier: Apache-2.0

// Command gateway evaluates functions for Porch and other callers.
package main

import (
	"context"
	"os"

	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// settings are all settings of the environment.
type settings struct {
	gateway.Config
	program.Settings
}

// Validate checks all settings.
func (s *settings) Validate() error { return s.ValidateWith(&s.Config) }

func main() {
	program.Slacken()
	program.Begin()
	var s settings
	program.Load("gateway", &s)
	s.Secrets = append(s.Secrets, gateway.ServiceAccount)
	if s.TLS.Directory != "" {
		s.Secrets = append(s.Secrets, s.TLS.Directory)
	}
	os.Exit(program.Main("gateway", s.Settings, func(_ context.Context, frame program.Frame) ([]serve.Component, error) {
		services, err := gateway.Connect(s.Config, frame) // open until the process exits
		if err != nil {
			return nil, err
		}
		component, err := gateway.New(s.Config, services, frame)
		return []serve.Component{component}, err
	}))
}
