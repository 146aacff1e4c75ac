// SPDX-License-Identifier: Apache-2.0

// Command image-resolver resolves image references.
package main

import (
	"context"
	"os"

	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// settings are everything that the environment sets.
type settings struct {
	imageresolver.Config
	program.Settings
}

// Validate checks all settings.
func (s *settings) Validate() error { return s.ValidateWith(&s.Config) }

func main() {
	program.Slacken()
	program.Begin()
	var s settings
	program.Load("image-resolver", &s)
	os.Exit(
		program.Main("image-resolver", s.Settings, func(_ context.Context, frame program.Frame) ([]serve.Component, error) {
			component, err := imageresolver.New(s.Config, frame)
			return []serve.Component{component}, err
		}),
	)
}
