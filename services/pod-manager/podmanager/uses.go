// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// settingsUpdates changes the settings of a running manager. Each of its methods replaces a single setting.
type settingsUpdates func(change func(*manager.Settings))

func (u settingsUpdates) setFunctions(f map[string]cacheconfig.Entry) {
	u(func(s *manager.Settings) { s.Functions = f })
}

func (u settingsUpdates) setConfigs(c *functionconfig.Set) {
	u(func(s *manager.Settings) { s.Configs = c })
}

func (u settingsUpdates) setTemplate(t podspec.Template) {
	u(func(s *manager.Settings) { s.Template = t })
}

func (u settingsUpdates) setTLS(t *podspec.TLS) { u(func(s *manager.Settings) { s.TLS = t }) }
