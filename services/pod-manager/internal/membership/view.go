// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"slices"
	"time"
)

const (
	// aliveFor is the time for which a replica counts as alive after a peer observed a change of its Lease.
	aliveFor = 15 * time.Second
	// forgetAfter is the time after which replicas delete an unchanged Lease.
	forgetAfter = time.Hour
)

// Member is the content of a replica's Lease.
type Member struct {
	// Name is the name of the replica and of its Lease.
	Name string
	// Holder identifies the process that writes the Lease.
	Holder string
	// Generation is the number of processes that have held the Lease so far.
	Generation int32
	// Address is the replica's address for gateways, as host:port. It is empty if gateways cannot reach the replica.
	Address string
	// StoodDown is the reason that the replica owns no functions. It is empty if the replica owns functions.
	StoodDown string
}

// ownershipKey returns the key that identifies the replica in the hash that assigns functions to replicas.
func (m Member) ownershipKey() string { return cmp.Or(m.Address, m.Name) }

// observedLease is the content of a Lease in the version that was read.
type observedLease struct {
	Member
	uid, version string
}

// view contains the Leases in the last list. It is pure: the age of a Lease is computed from the times that callers
// pass to observeLeases, never from a clock or from a peer's timestamps. Ages end at the last list, because a failed
// list is no evidence that peers are silent.
type view struct {
	seen map[string]agedLease // keyed by name
	at   time.Time            // time of the last list
}

// agedLease is a Lease with the time when its last change was observed.
type agedLease struct {
	observedLease
	changed time.Time
}

func newView() *view { return &view{seen: make(map[string]agedLease)} }

// observeLeases replaces the view with a list of all Leases.
func (v *view) observeLeases(now time.Time, all []observedLease) {
	next := make(map[string]agedLease, len(all))
	for _, s := range all {
		changed := now
		if before, known := v.seen[s.Name]; known && before.uid == s.uid && before.version == s.version {
			changed = before.changed
		}
		next[s.Name] = agedLease{s, changed}
	}
	v.seen = next
	v.at = now
}

// aliveMembers returns the living replicas other than without, sorted by name.
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

// isSilent reports whether a replica's Lease is unchanged for aliveFor, or missing.
func (v *view) isSilent(name string) bool {
	s, known := v.seen[name]
	return !known || v.at.Sub(s.changed) >= aliveFor
}

// forgottenLeases returns the Leases that are unchanged for forgetAfter.
func (v *view) forgottenLeases() []observedLease {
	var old []observedLease
	for _, s := range v.seen {
		if v.at.Sub(s.changed) >= forgetAfter {
			old = append(old, s.observedLease)
		}
	}
	return old
}
