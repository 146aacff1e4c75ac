// SPDX-License-Identifier: Apache-2.0

package function

import "github.com/krm-function-runner/function-runner/libs/cgroup"

// MaxImageBytes is the maximum length of an image's name.
const MaxImageBytes = maxImageBytes

// MemoryReserve returns the part of a memory limit that never counts as free.
func MemoryReserve(limit int64) int64 { return memoryReserve(limit) }

// SetKills sets what explains killed functions.
func (s *Service) SetKills(kills *cgroup.Kills) { s.kills = kills }

// Full reports whether a further evaluation would wait for a slot.
func (p *Pod) Full() bool {
	if p.slots.TryAcquire(1) {
		p.slots.Release(1)
		return false
	}
	return true
}

// Spares returns the number of spare processes.
func (s *Service) Spares() int { return s.runner.Spares() }
