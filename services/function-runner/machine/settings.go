// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

type (
	// Gateway and ImageResolver are embedded under these names, so that their variables need no prefix: a setting of
	// both services is one variable.
	Gateway = gateway.Config
	// ImageResolver is embedded for the same reason.
	ImageResolver = imageresolver.Config
)

// Settings are the settings of function-runner that matter without Kubernetes and without ports, with the same names.
type Settings struct {
	Gateway
	ImageResolver
	SandboxSettings
}

// Load returns the settings of the environment. FNR_SANDBOX is auto by default. Load ignores unknown variables.
func Load() (Settings, error) {
	var s Settings
	if err := config.FillKnown(&s); err != nil {
		return Settings{}, err
	}
	if !config.IsSet("Sandbox") {
		s.SandboxSettings.Sandbox = auto
	}
	s.share()
	return s, s.Validate()
}

// auto is the value of FNR_SANDBOX for any launcher that works.
const auto = "auto"

// share copies the settings of fnctl --local, and the common settings, to the services.
func (s *Settings) share() {
	g := &s.Gateway
	g.Sandbox = s.Launcher()
	g.Sandbox.Required = true
	g.DisableRuntimes = []string{gateway.RuntimeExec, gateway.RuntimePod}
	// The caller is the same process and sets its own timeouts.
	g.MaxEvaluationTime = 0
	// Most functions are called once, which leaves a spare process unused.
	g.Exec.Prefork = 0
	s.ImageResolver.DefaultImagePrefix = g.DefaultImagePrefix
}

// Validate checks all settings. Its errors contain the names of variables.
func (s *Settings) Validate() error {
	var checks config.Checks
	checks.Within("", s.Gateway.Validate())
	checks.Within("", s.ImageResolver.Validate())
	s.Check(&checks)
	return config.Rename(checks.Err(), config.Variable)
}
