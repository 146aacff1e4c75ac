// SPDX-License-Identifier: Apache-2.0

// Command image-resolver is a gRPC service that looks up the digest and the command of container images.
package main

import (
	"context"
	"os"

	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// settings contains the values of the program's environment variables.
type settings struct {
	imageresolver.Config
	servermain.Settings
}

// Validate checks all settings.
func (s *settings) Validate() error { return s.ValidateWith(&s.Config) }

func main() {
	servermain.Slacken()
	servermain.Begin()
	var s settings
	servermain.Load("image-resolver", &s)
	build := func(_ context.Context, frame servermain.Frame) ([]serve.Component, error) {
		component, err := imageresolver.New(s.Config, frame)
		return []serve.Component{component}, err
	}
	os.Exit(servermain.Main("image-resolver", s.Settings, build))
}
