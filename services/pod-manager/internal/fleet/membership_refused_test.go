// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/membership"
)

// linked is a member with a link that can be broken before it starts.
func linked(t *testing.T, server *Server, n int, breaks func(*Link)) *member {
	t.Helper()
	client, link := server.Client("linked")
	breaks(link)
	r := join(t, server, n, func(c *membership.Config) { c.Leases = client.CoordinationV1().Leases("fns") })
	r.link = link
	return r
}

// joined reports whether a replica has begun to serve.
func (r *member) joined() bool {
	select {
	case <-r.Joined():
		return true
	default:
		return false
	}
}

func forbidden(l *Link) { l.Forbid("leases", true) }

// refused is a quota or an admission policy that takes no Lease.
func refused(l *Link) {
	err := apierrors.NewInternalError(errors.New("the webhook does not answer"))
	l.Refuse("create leases", err)
	l.Refuse("update leases", err)
}

func TestWithoutRightsEachOwnsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		a := linked(t, server, 2, forbidden)
		wait(time.Second)
		owners := a.Owners()
		if owners.Shared() || !owners.Owner("fn:v1").Mine || owners.StoodDown != "" || !a.joined() {
			t.Errorf("owners %+v", owners)
		}
		wait(5 * time.Hour)
		if n := strings.Count(a.log.String(), "Lease not renewed"); n != 1 {
			t.Errorf("the log has the lack of rights %d times:\n%s", n, a.log.String())
		}
		if reads, lists := server.Requests("get leases"), server.Requests("list leases"); reads > 40 || lists > 0 {
			t.Errorf("%d reads and %d lists without rights in five hours, want few and none", reads, lists)
		}
		a.link.Forbid("leases", false)
		wait(20 * time.Minute)
		if !a.Owners().Shared() {
			t.Error("a replica that has got rights is no member")
		}
	})
}

// TestRefusalsOfAnAPIServerThatHasJustStarted: it does not know Roles yet.
func TestRefusalsOfAnAPIServerThatHasJustStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := joinBoth(t)
		forbidden(a.link)
		for range 40 { // not longer than a Lease lasts
			wait(100 * time.Millisecond)
			if counts := owned(t, a, b); sum(counts) != 60 || !a.Owners().Shared() {
				t.Fatalf("replicas own %v of 60 functions", counts)
			}
		}
		a.link.Forbid("leases", false)
		wait(2 * time.Second)
		forbidden(a.link)
		wait(12 * time.Second)
		a.link.Forbid("leases", false)
		wait(20 * time.Second)
		if counts := owned(t, a, b); sum(counts) != 60 || !a.Owners().Shared() {
			t.Errorf("after the second start replicas own %v of 60 functions", counts)
		}
	})
}

// TestOnlyReplicaServesWithoutItsLease: the Kubernetes API answers, and takes no Lease.
func TestOnlyReplicaServesWithoutItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		a := linked(t, server, 1, refused)
		wait(10 * time.Second)
		if a.joined() {
			t.Error("the replica serves, and its Lease might be accepted yet")
		}
		wait(16 * time.Second)
		if counts := owned(t, a); !a.joined() || counts[0] != 60 {
			t.Errorf("serving: %t; it owns %v of 60 functions", a.joined(), counts)
		}
		wait(time.Hour)
		if n := strings.Count(a.log.String(), "Lease not renewed"); n != 1 {
			t.Errorf("the log has it %d times:\n%s", n, a.log.String())
		}
		b := join(t, server, 2)
		wait(8 * time.Second)
		if counts := owned(t, a, b); counts[1] != 60 {
			t.Errorf("a member came, and replicas own %v of 60 functions", counts)
		}
		a.link.Refuse("create leases", nil)
		a.link.Refuse("update leases", nil)
		wait(8 * time.Second)
		if counts := owned(t, a, b); sum(counts) != 60 || counts[0] < 10 {
			t.Errorf("replicas own %v of 60 functions", counts)
		}
		refused(b.link)
		wait(time.Minute)
		if counts := owned(t, a, b); counts[0] != 60 {
			t.Errorf("replicas own %v of 60 functions", counts)
		}
	})
}

// TestReplicaWithoutItsLeaseLeavesFunctionsToMembers begins to serve, with what is ready.
func TestReplicaWithoutItsLeaseLeavesFunctionsToMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		member := join(t, server, 1)
		a := linked(t, server, 2, refused)
		wait(30 * time.Second)
		if counts := owned(t, a, member); !a.joined() || counts[1] != 60 || a.Owners().StoodDown == "" {
			t.Errorf("serving: %t; replicas own %v of 60 functions; %+v", a.joined(), counts, a.Owners())
		}
	})
}

// TestReplicaThatKnowsNoPeersServes, with what is ready: the Kubernetes API has not answered yet.
func TestReplicaThatKnowsNoPeersServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		join(t, server, 1)
		a := linked(t, server, 2, (*Link).Cut)
		wait(30 * time.Second)
		if !a.joined() || a.Owners().Shared() {
			t.Errorf("serving: %t, with membership: %t", a.joined(), a.Owners().Shared())
		}
	})
}

// TestReplicaDeletesNothingByAnOldList has a replica own all functions as far as it knows, before it has listed Leases
// and after it has been cut off: by then others may own the functions.
func TestReplicaDeletesNothingByAnOldList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(nil)
		a := linked(t, server, 1, (*Link).Cut)
		wait(30 * time.Second)
		expect := func(want bool, when string) {
			t.Helper()
			if counts := owned(t, a); counts[0] != 60 || a.Owns("fn:v1") != want {
				t.Errorf("%s: owns %v of 60 functions, may delete: %t, want %t", when, counts, !want, want)
			}
		}
		expect(false, "before the first list")
		a.link.Heal()
		wait(4 * time.Second)
		expect(true, "as the only replica")
		a.link.Cut()
		wait(16 * time.Second)
		expect(false, "cut off")
		a.link.Heal()
		wait(4 * time.Second)
		expect(true, "after a list")
		forbidden(a.link)
		wait(time.Minute)
		expect(true, "without rights")
	})
}

// TestLastReplicaStaysReady: a replica that is cut off has gateways ask others, if there are any.
func TestLastReplicaStaysReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := joinBoth(t)
		a.link.Cut()
		wait(16 * time.Second)
		if a.Owners().StoodDown == "" || b.Owners().StoodDown != "" {
			t.Errorf("the replica that is cut off stands down for %q, the other one for %q", a.Owners().StoodDown,
				b.Owners().StoodDown)
		}
		a.end()
		wait(10 * time.Second)
		b.link.Cut()
		wait(time.Minute)
		if counts := owned(t, b); counts[0] != 60 || b.Owners().StoodDown != "" {
			t.Errorf("the last replica owns %d of 60 functions, and stands down for %q", counts[0], b.Owners().StoodDown)
		}
	})
}
