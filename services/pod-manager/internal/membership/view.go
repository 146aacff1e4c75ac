// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	// aliveFor is the time for which a replica counts as alive after the last observed change of its Lease.
	aliveFor = 15 * time.Second
	// forgetAfter is the time after which an unchanged Lease is deleted, such as the Lease of a crashed replica.
	forgetAfter = time.Hour
)

// Member describes a replica, as stored in the replica's Lease.
type Member struct {
	// Name is the name of the replica. Its Lease has the same name with the prefix "fnr-".
	Name string
	// Address is the address where gateways reach the replica, as host:port. It is empty if gateways cannot reach
	// it.
	Address string
	// StoodDown is the reason that the replica owns no functions. It is empty if the replica owns functions.
	StoodDown string
}

// ownershipKey returns the text that identifies the replica when a hash assigns functions to replicas.
func (m Member) ownershipKey() string { return cmp.Or(m.Address, m.Name) }

// view is an immutable snapshot of the Leases of all replicas. The age of a Lease is the time since this replica last
// saw the Lease change. It does not depend on the timestamps of peers. While list requests fail, no Lease gets older,
// because its replica may be alive.
type view struct {
	leases []agedLease
	at     time.Time // time of the last list, or zero before the first list
}

// agedLease is a Lease and the time when this replica last observed a change of the Lease.
type agedLease struct {
	lease   *coordinationv1.Lease
	changed time.Time
}

// observe returns a snapshot of the listed Leases. For an unchanged Lease, it copies the time of its last change.
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

// aliveMembers returns the living replicas, sorted by name. It omits the replica with the given name.
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

// forgottenLeases returns the Leases to delete, because they have not changed for an hour (forgetAfter).
func (v view) forgottenLeases() []*coordinationv1.Lease {
	var old []*coordinationv1.Lease
	for _, seen := range v.leases {
		if v.at.Sub(seen.changed) >= forgetAfter {
			old = append(old, seen.lease)
		}
	}
	return old
}
