// SPDX-License-Identifier: Apache-2.0

package pool

// Leases counts the leases that a machine knows, waiting and granted.
func (m *Machine) Leases() int { return len(m.leases.known) }
