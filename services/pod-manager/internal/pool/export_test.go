// SPDX-License-Identifier: Apache-2.0

package pool

// Remembered counts the pods that a machine remembers after their end: pods that are gone, and pods that
// ran out of memory.
func (m *Machine) Remembered() (gone, starved int) {
	return len(m.pods.gone), len(m.leases.outOfMemory)
}

// Leases counts the leases that a machine knows, waiting and granted.
func (m *Machine) Leases() int { return len(m.leases.known) }

// Waiting counts the leases that wait in all pools.
func (m *Machine) Waiting() (waiting int) {
	for _, p := range m.pools {
		waiting += len(p.queue)
	}
	return waiting
}

// IsOutdated reports whether a pod is of another version than new ones.
func (m *Machine) IsOutdated(pod string) bool {
	p := m.pods.byName[pod]
	return p.pool.isOutdated(m.step.at, p)
}
