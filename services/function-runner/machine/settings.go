// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/function"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

// Settings are those of function-runner that matter without Kubernetes and without a port, by the same
// names.
type Settings struct {
	Gateway       gateway.Config
	ImageResolver imageresolver.Config `split_words:"true"`
	function.Confinement
	FunctionNetwork []string `split_words:"true"`
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
		s.Sandbox = auto
	}
	s.share()
	return s, s.Validate()
}

// auto is the value of FNR_SANDBOX for any launcher that works.
const auto = "auto"

// share gives the services the settings that have no prefix.
func (s *Settings) share() {
	g := &s.Gateway
	g.Confinement, g.FunctionNetwork, g.Sandbox = s.Confinement, s.FunctionNetwork, s.Launcher()
	g.Sandbox.Required = true
	g.DisableRuntimes = []string{gateway.RuntimeExec, gateway.RuntimePod}
	// The caller is the same process: it decides how long it waits.
	g.MaxEvaluationTime, g.MaxConnectionAge = 0, 0
	// It calls a function once, mostly: a spare process would not be used.
	g.Exec.Prefork = 0
	s.ImageResolver.DefaultImagePrefix = g.DefaultImagePrefix
	s.ImageResolver.InsecureRegistriesName = config.Variable("ImageResolver.InsecureRegistries")
	s.ImageResolver.RegistryTLSPathsName = config.Variable("ImageResolver.RegistryTLSPaths")
}

// Validate checks all settings. Its error names their variables.
func (s *Settings) Validate() error {
	var checks config.Checks
	checks.Within("Gateway", s.Gateway.Validate())
	checks.Within("ImageResolver", s.ImageResolver.Validate())
	s.Check(&checks)
	return config.Rename(checks.Err(), variable)
}

// Shared are the settings of services that have no prefix here.
var Shared = []string{"Confine", "MaxTempBytes", "MaxTempFiles", "FunctionNetwork"}

// variable returns the variable of a setting.
func variable(field string) string {
	if name, ok := strings.CutPrefix(field, "Gateway."); ok && slices.Contains(Shared, name) {
		return config.Variable(name)
	}
	return config.Variable(field)
}
