// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentOwnerIsNotNamedAgain has the other replicas name the silent one as the owner, as they do until
// they have noticed: they serve callers that tried it.
func TestSilentOwnerIsNotNamedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"}
		f := newFleet(t, all...)
		owner := leaseFrom(t, f.client, "fn")
		f.nameOwner(owner)
		f.hosts[owner].SetSilent(true)
		took, from := f.leases(t, 10)
		if slices.Contains(from, owner) || took[0] > 2*time.Second || slices.Max(took[1:]) > 0 {
			t.Errorf("leases took %v from %v", took, from)
		}
	})
}
