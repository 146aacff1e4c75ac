// SPDX-License-Identifier: Apache-2.0

package localrunner

import (
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

type (
	// Gateway is an alias of the gateway's settings. It is necessary because [Settings] cannot embed two types named
	// Config. If several embedded types contain the same field, its environment variable sets the field in each type.
	Gateway = gateway.Config
	// ImageResolver is an alias of the image-resolver's settings, for embedding in [Settings].
	ImageResolver = imageresolver.Config
)

// Settings contains the settings of function-runner that also apply to a [Runner], which uses neither Kubernetes
// nor ports. The environment variables are the same as in function-runner.
type Settings struct {
	Gateway
	ImageResolver
	SandboxSettings
}

// Load returns the settings from the environment variables. Unlike in function-runner, the default of FNR_SANDBOX
// is auto.
func Load() (Settings, error) {
	var s Settings
	if err := config.Fill(&s); err != nil {
		return Settings{}, err
	}
	if !config.IsSet("Sandbox") {
		s.SandboxSettings.Sandbox = auto
	}
	s.shareSettings()
	return s, s.Validate()
}

// auto is the value of FNR_SANDBOX that selects the first launcher that works on this machine.
const auto = "auto"

// shareSettings sets the values that are fixed for "fnctl --local", and copies values from the gateway's settings to
// the image-resolver's settings.
func (s *Settings) shareSettings() {
	g := &s.Gateway
	g.Sandbox = s.Launcher()
	g.Sandbox.Required = true
	g.DisableRuntimes = []string{gateway.RuntimeExec, gateway.RuntimePod}
	// Disable the gateway's time limit, because its only caller is this process, which sets its own timeouts.
	g.MaxEvaluationTime = 0
	// Start no processes of functions in advance, because most functions are called only once.
	g.Exec.Prefork = 0
	s.ImageResolver.DefaultImagePrefix = g.DefaultImagePrefix
}

// Validate checks all settings. Errors contain the names of the environment variables.
func (s *Settings) Validate() error {
	var checks config.Checks
	checks.Within("", s.Gateway.Validate())
	checks.Within("", s.ImageResolver.Validate())
	s.Check(&checks)
	return config.Rename(checks.Err(), config.Variable)
}
