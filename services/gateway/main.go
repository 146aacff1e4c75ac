// SPDX-License-Identifier: Apache-2.0

// Command gateway evaluates functions for Porch and other callers, as local binaries or in pods.
package main

import (
	"context"
	"os"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

type settings struct {
	gateway.Config
	servermain.Settings
}

// Validate checks all settings.
func (s *settings) Validate() error { return s.ValidateWith(&s.Config) }

func main() {
	servermain.Slacken()
	servermain.Begin()
	var s settings
	servermain.Load("gateway", &s)
	s.Secrets = append(s.Secrets, gateway.ServiceAccount)
	if s.TLS.Directory != "" {
		s.Secrets = append(s.Secrets, s.TLS.Directory)
	}
	build := func(_ context.Context, frame servermain.Frame) ([]serve.Component, error) {
		services, err := gateway.Connect(s.Config, frame) // its connections stay open until the process exits
		if err != nil {
			return nil, err
		}
		component, err := gateway.New(s.Config, services, frame)
		return []serve.Component{component}, err
	}
	os.Exit(servermain.Main("gateway", s.Settings, build))
}
