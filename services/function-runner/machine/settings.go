// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

type (
	// Gateway and the other configurations of services are embedded under these names, so that their variables have
	// no prefix: a setting of several services is one variable, with the same value for all.
	Gateway = gateway.Config
	// ImageResolver is embedded likewise.
	ImageResolver = imageresolver.Config
)

// Settings are the settings of function-runner that matter without Kubernetes and without a port, by the
// same names.
type Settings struct {
	Gateway
	ImageResolver
	SandboxSettings
}

// Load returns the settings of the environment. Sandboxes are those of this machine unless FNR_SANDBOX says
// otherwise. Variables of other programs are ignored.
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

// share copies the settings of fnctl --local to the services, and the settings that several services have.
func (s *Settings) share() {
	g := &s.Gateway
	g.Sandbox = s.Launcher()
	g.Sandbox.Required = true
	g.DisableRuntimes = []string{gateway.RuntimeExec, gateway.RuntimePod}
	// The caller is the same process: it decides how long it waits.
	g.MaxEvaluationTime = 0
	// It calls a function once, mostly: a spare process would not be used.
	g.Exec.Prefork = 0
	s.ImageResolver.DefaultImagePrefix = g.DefaultImagePrefix
}

// Validate checks all settings. Its error names their variables.
func (s *Settings) Validate() error {
	var checks config.Checks
	checks.Within("", s.Gateway.Validate())
	checks.Within("", s.ImageResolver.Validate())
	s.Check(&checks)
	return config.Rename(checks.Err(), config.Variable)
}
