// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/cacheconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/functionconfig"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// uses changes the settings of a running manager. Each method replaces a single setting.
type uses func(change func(*manager.Settings))

func (u uses) functions(f map[string]cacheconfig.Entry) {
	u(func(s *manager.Settings) { s.Functions = f })
}

func (u uses) configs(c *functionconfig.Set) { u(func(s *manager.Settings) { s.Configs = c }) }

func (u uses) template(t podspec.Template) { u(func(s *manager.Settings) { s.Template = t }) }

func (u uses) tls(t *podspec.TLS) { u(func(s *manager.Settings) { s.TLS = t }) }
