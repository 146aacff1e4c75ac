// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
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
	// Address is the replica's address for gateways, as host:port. It is empty if gateways cannot reach the replica.
	Address string
	// StoodDown is the reason that the replica owns no functions. It is empty if the replica owns functions.
	StoodDown string
}

// ownershipKey returns the key that identifies the replica in the hash that assigns functions to replicas.
func (m Member) ownershipKey() string { return cmp.Or(m.Address, m.Name) }

// view contains the Leases in the last list. It is pure and immutable: the age of a Lease is computed from the times
// that callers pass to observe, never from a clock or from a peer's timestamps. Ages end at the last list, because a
// failed list is no evidence that peers are silent.
type view struct {
	leases []agedLease
	at     time.Time // time of the last list, or zero before the first list
}

// agedLease is a Lease with the time when its last change was observed.
type agedLease struct {
	lease   *coordinationv1.Lease
	changed time.Time
}

// observe returns the view after a list of all Leases.
func (v view) observe(now time.Time, all []coordinationv1.Lease) view {
	next := view{at: now}
	for i := range all {
		seen := agedLease{&all[i], now}
		for _, before := range v.leases {
			if before.lease.UID == seen.lease.UID && before.lease.ResourceVersion == seen.lease.ResourceVersion {
				seen.changed = before.changed
			}
		}
		next.leases = append(next.leases, seen)
	}
	return next
}

// aliveMembers returns the living replicas other than without, sorted by name.
func (v view) aliveMembers(without string) []Member {
	var alive []Member
	for _, seen := range v.leases {
		if m := readMember(seen.lease); m.Name != without && v.at.Sub(seen.changed) < aliveFor {
			alive = append(alive, m)
		}
	}
	slices.SortFunc(alive, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return alive
}

// forgottenLeases returns the Leases that are unchanged for forgetAfter.
func (v view) forgottenLeases() []*coordinationv1.Lease {
	var old []*coordinationv1.Lease
	for _, seen := range v.leases {
		if v.at.Sub(seen.changed) >= forgetAfter {
			old = append(old, seen.lease)
		}
	}
	return old
}
