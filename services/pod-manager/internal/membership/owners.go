// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"slices"

	"github.com/krm-function-runner/function-runner/libs/ownership"
)

// Owner is the replica that owns a function.
type Owner struct {
	// Mine reports whether it is this one.
	Mine bool
	// Address is where gateways reach it, as host:port, if it is another one; empty if that
	// is not known.
	Address string
	// Alone reports whether this replica has no membership: others may own the function too.
	Alone bool
}

// Owners is the replicas that own functions, as one replica sees them at one time. It never
// changes. The zero Owners is that of a replica without membership: it owns all.
type Owners struct {
	// Lost is why this replica cannot act as a member; empty if it can.
	Lost string
	// Cause is the error of the Kubernetes API that Lost comes from; empty if there is none.
	Cause string
	// StoodDown is why this replica leaves all functions to others, although it could act.
	StoodDown string
	// owning are the replicas among which functions are divided, by name.
	owning []Member
	keys   []string
	self   string // the name of this replica, while it is one of them; empty for none
	shared bool   // there is a membership
	alive  int
}

// newOwners divides the functions among the living replicas. self is this replica. lost is why it
// must not act as one, and empty if it may.
func newOwners(self Member, others []Member, lost string) Owners {
	o := Owners{shared: true, Lost: lost, alive: len(others)}
	all := others
	if lost == "" {
		o.self, o.alive, all = self.Name, len(others)+1, append(slices.Clone(others), self)
	}
	o.owning = slices.DeleteFunc(slices.Clone(all), func(m Member) bool { return m.StoodDown != "" })
	if len(o.owning) == 0 {
		o.owning = all // functions that nothing owns would never be collected
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

// Idle is why this replica owns nothing; empty if it may own functions.
func (o Owners) Idle() string { return cmp.Or(o.Lost, o.StoodDown) }

// Able reports whether gateways should ask this replica: it may own functions, or it knows of no
// other one that lives.
func (o Owners) Able() bool { return o.Idle() == "" || o.alive == 0 }

// Replicas counts the replicas among which functions are divided; one without membership.
func (o Owners) Replicas() int { return max(len(o.owning), 1) }

// Shared reports whether there is a membership. Without one, other replicas may own the same
// functions.
func (o Owners) Shared() bool { return o.shared }

// equal reports whether both divide functions in the same way, for the same reasons.
func (o Owners) equal(other Owners) bool {
	return o.Idle() == other.Idle() && o.Cause == other.Cause && o.self == other.self &&
		o.shared == other.shared && o.alive == other.alive && slices.Equal(o.owning, other.owning)
}
