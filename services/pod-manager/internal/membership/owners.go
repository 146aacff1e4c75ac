// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"

	"github.com/krm-function-runner/function-runner/libs/ownership"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Owners is an immutable snapshot of the owners of all functions, as this replica sees them. The zero value means that
// replicas do not coordinate, so that this replica owns all functions.
type Owners struct {
	// StoodDown is the reason that this replica owns no functions. It is empty if the replica owns functions.
	StoodDown string
	// owning contains the replicas that divide the functions among themselves.
	owning []Member
	keys   []string
	self   string // name of this replica
	shared bool   // true if replicas coordinate by Leases
	alive  int
}

// newOwners divides the functions among the living replicas that have not stood down. If all of them have stood down,
// they share the functions nevertheless, because otherwise no replica would delete pods.
func newOwners(self Member, others []Member) Owners {
	all := slices.Concat(others, []Member{self})
	o := Owners{self: self.Name, shared: true, alive: len(all)}
	for _, m := range all {
		if m.StoodDown == "" {
			o.owning = append(o.owning, m)
		}
	}
	if len(o.owning) == 0 {
		o.owning = all
	} else {
		o.StoodDown = self.StoodDown
	}
	for _, m := range o.owning {
		o.keys = append(o.keys, m.ownershipKey())
	}
	return o
}

// Owner returns the owner of an image's function.
func (o Owners) Owner(image string) pool.Owner {
	if !o.shared {
		return pool.Owner{Mine: true, Alone: true}
	}
	owner := o.owning[ownership.Owner(o.keys, image)]
	if owner.Name == o.self {
		return pool.Owner{Mine: true}
	}
	return pool.Owner{Address: owner.Address}
}

// Replicas returns the number of replicas that share the functions. It is 1 if replicas do not coordinate.
func (o Owners) Replicas() int { return max(len(o.owning), 1) }

// Shared reports whether replicas divide the functions among themselves. If not, several replicas may own the same
// function.
func (o Owners) Shared() bool { return o.shared }

// Event returns the event that informs the pools of the current owners of functions.
func (o Owners) Event() pool.OwnersChanged {
	event := pool.OwnersChanged{
		Owner:    func(f pool.Function) pool.Owner { return o.Owner(f.Reference) },
		Replicas: o.Replicas(),
	}
	if o.StoodDown == notRenewed {
		event.Lost = notRenewed
	}
	return event
}

// equal reports whether two snapshots contain the same replicas and the same value of StoodDown.
func (o Owners) equal(other Owners) bool {
	return o.StoodDown == other.StoodDown && o.shared == other.shared && o.alive == other.alive &&
		slices.Equal(o.owning, other.owning)
}
