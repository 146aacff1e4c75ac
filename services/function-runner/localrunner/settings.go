// SPDX-License-Identifier: Apache-2.0

package localrunner

import (
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

type (
	// Gateway and ImageResolver are distinct names for embedding. Embedded configurations need no prefix in the names
	// of their variables, so that a single variable sets a setting of both services.
	Gateway = gateway.Config
	// ImageResolver is such a name too.
	ImageResolver = imageresolver.Config
)

// Settings are the settings of function-runner that apply without Kubernetes and without ports. Their variables are
// the same as in function-runner.
type Settings struct {
	Gateway
	ImageResolver
	SandboxSettings
}

// Load returns the settings of the environment. The default of FNR_SANDBOX is auto here. Load ignores unknown
// variables.
func Load() (Settings, error) {
	var s Settings
	if err := config.FillKnown(&s); err != nil {
		return Settings{}, err
	}
	if !config.IsSet("Sandbox") {
		s.SandboxSettings.Sandbox = auto
	}
	s.shareSettings()
	return s, s.Validate()
}

// auto is the value of FNR_SANDBOX for any launcher that works.
const auto = "auto"

// shareSettings sets the fixed settings of fnctl --local, and copies settings that both services use.
func (s *Settings) shareSettings() {
	g := &s.Gateway
	g.Sandbox = s.Launcher()
	g.Sandbox.Required = true
	g.DisableRuntimes = []string{gateway.RuntimeExec, gateway.RuntimePod}
	// The only caller is this process, and it sets its own timeouts.
	g.MaxEvaluationTime = 0
	// No spare processes, because most functions are called only once.
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
