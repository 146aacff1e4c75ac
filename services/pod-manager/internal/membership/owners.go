// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/ownership"
)

// Owner identifies the replica that owns a function.
type Owner struct {
	// Mine is true if this replica is the owner.
	Mine bool
	// Address is the owner's address for gateways, as host:port, if it is another replica. It is empty if the address
	// is unknown.
	Address string
	// Alone is true if this replica runs without membership: other replicas may own the function, too.
	Alone bool
}

// Owners is an immutable snapshot of the replicas that own functions, as this replica observes them. The zero Owners
// is for a replica without membership, which owns all functions.
type Owners struct {
	// Lost is the reason that this replica cannot act as a member. It is empty if the replica can.
	Lost string
	// Cause is the underlying error of the Kubernetes API. It is empty without such an error.
	Cause string
	// StoodDown is the reason that this replica owns no functions although it can act as a member. It is empty
	// if the replica owns functions.
	StoodDown string
	// owning contains the replicas that share the functions, sorted by name.
	owning []Member
	keys   []string
	self   string // name of this replica if owning contains it, else empty
	shared bool   // true with membership
	alive  int
}

// newOwners divides the functions among the living replicas. self is this replica. lost is the reason that self
// must not act as a member. lost is empty if self may act.
func newOwners(self Member, others []Member, lost string) Owners {
	o := Owners{shared: true, Lost: lost, alive: len(others)}
	all := others
	if lost == "" {
		o.self = self.Name
		o.alive = len(others) + 1
		all = append(slices.Clone(others), self)
	}
	o.owning = slices.DeleteFunc(slices.Clone(all), func(m Member) bool { return m.StoodDown != "" })
	if len(o.owning) == 0 {
		o.owning = all // otherwise nobody would delete pods while all replicas stand down
	}
	for _, m := range o.owning {
		o.keys = append(o.keys, m.ownershipKey())
	}
	if lost == "" && !slices.ContainsFunc(o.owning, func(m Member) bool { return m.Name == self.Name }) {
		o.StoodDown = self.StoodDown
	}
	return o
}

// Owner returns the owner of an image's function.
func (o Owners) Owner(image string) Owner {
	if !o.shared {
		return Owner{Mine: true, Alone: true}
	}
	i := ownership.Owner(o.keys, image)
	if i < 0 {
		return Owner{}
	}
	owner := o.owning[i]
	if owner.Name == o.self {
		return Owner{Mine: true}
	}
	return Owner{Address: owner.Address}
}

// Idle returns the reason that this replica owns no functions. It is empty if the replica may own functions.
func (o Owners) Idle() string { return cmp.Or(o.Lost, o.StoodDown) }

// Able reports whether gateways should call this replica: it may own functions, or no other replica is alive.
func (o Owners) Able() bool { return o.Idle() == "" || o.alive == 0 }

// Replicas returns the number of replicas that share the functions. It is 1 without membership.
func (o Owners) Replicas() int { return max(len(o.owning), 1) }

// Shared reports whether there is a membership. Without membership, other replicas may own the same functions.
func (o Owners) Shared() bool { return o.shared }

// equal reports whether two snapshots contain the same owners and the same reasons.
func (o Owners) equal(other Owners) bool {
	return o.Idle() == other.Idle() && o.Cause == other.Cause && o.self == other.self &&
		o.shared == other.shared && o.alive == other.alive && slices.Equal(o.owning, other.owning)
}
