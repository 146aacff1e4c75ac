// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"slices"
	"time"
)

const (
	// aliveFor is how long a replica counts as alive after its Lease was seen to change.
	aliveFor = 15 * time.Second
	// forgetAfter is how long a Lease may stay unchanged before it is deleted.
	forgetAfter = time.Hour
)

// Member is a replica as its Lease describes it.
type Member struct {
	// Name is the replica's name, which is also that of its Lease.
	Name string
	// Holder identifies the process that writes the Lease.
	Holder string
	// Generation counts the processes that held the Lease.
	Generation int32
	// Address is where gateways reach the replica, as host:port; empty if they cannot.
	Address string
	// StoodDown is why the replica owns nothing; empty if it does own functions.
	StoodDown string
}

// ownershipKey is what the replica's score is computed from: the address, as in gateways.
func (m Member) ownershipKey() string { return cmp.Or(m.Address, m.Name) }

// observedLease is a Lease as it was read.
type observedLease struct {
	Member
	uid, version string
}

// view is what is known of Leases. It is pure: ages are computed from the times given to observe, never
// from a clock or a time that another replica wrote, and relative to the last list: that no later one
// succeeded says nothing about other replicas.
type view struct {
	seen map[string]agedLease // by name
	at   time.Time            // of the last list
}

// agedLease is the last sighting of a Lease, with when it was first seen in this version.
type agedLease struct {
	observedLease
	changed time.Time
}

func newView() *view { return &view{seen: make(map[string]agedLease)} }

// observeLeases takes over a list of all Leases. A Lease that is not in it is gone.
func (v *view) observeLeases(now time.Time, all []observedLease) {
	next := make(map[string]agedLease, len(all))
	for _, s := range all {
		changed := now
		if before, known := v.seen[s.Name]; known && before.uid == s.uid && before.version == s.version {
			changed = before.changed
		}
		next[s.Name] = agedLease{s, changed}
	}
	v.seen, v.at = next, now
}

// aliveMembers returns the living replicas by name, without one of that name.
func (v *view) aliveMembers(without string) []Member {
	var alive []Member
	for name, s := range v.seen {
		if name != without && v.at.Sub(s.changed) < aliveFor {
			alive = append(alive, s.Member)
		}
	}
	slices.SortFunc(alive, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return alive
}

// isSilent reports whether a Lease has not changed for as long as a replica counts as alive.
func (v *view) isSilent(name string) bool {
	s, known := v.seen[name]
	return !known || v.at.Sub(s.changed) >= aliveFor
}

// forgottenLeases returns the Leases that have not changed for so long that they can be deleted.
func (v *view) forgottenLeases() []observedLease {
	var old []observedLease
	for _, s := range v.seen {
		if v.at.Sub(s.changed) >= forgetAfter {
			old = append(old, s.observedLease)
		}
	}
	return old
}
