// SPDX-License-Identifier: Apache-2.0

package function

import "github.com/krm-function-runner/function-runner/libs/cgroup"

// MaxImageBytes is the maximum length of an image's name.
const MaxImageBytes = maxImageBytes

// SetKills sets what explains killed functions.
func (s *Service) SetKills(kills *cgroup.Kills) { s.kills = kills }

// Spares returns the number of spare processes.
func (s *Service) Spares() int { return s.runner.Spares() }
