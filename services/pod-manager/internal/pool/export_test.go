package pool

// Leases is how many leases a machine knows: those that wait and those that have a
// place.
func (m *Machine) Leases() int { return len(m.leases) }
