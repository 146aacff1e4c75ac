// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// notMine has a replica name another one as the owner, and serve callers that tried that one.
func (c *cluster) notMine(replica, owner string) {
	owner += ":" + c.port
	c.replicas[replica].SetGrant(func(_ context.Context, open *lease.Open, _ func(*lease.Waiting)) (*lease.Granted,
		error,
	) {
		if slices.Contains(open.GetTried(), owner) {
			return &lease.Granted{Pod: replica}, nil
		}
		return nil, lease.OwnedBy(owner, fault.New(fault.Unavailable, "another pod-manager owns the function"))
	})
}

// firstAndOthers returns the replica that a gateway asks first for the image fn, and the others.
func (c *cluster) firstAndOthers(t *testing.T, m lease.Manager, all ...string) (first string, others []string) {
	t.Helper()
	first = leaseFrom(t, m, "fn")
	return first, slices.DeleteFunc(slices.Clone(all), func(a string) bool { return a == first })
}

func TestOwnerThatAReplicaNamesIsAsked(t *testing.T) {
	all := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	c := newCluster(t, all...)
	c.set(all...)
	m := c.manager(t, "pod-manager")
	_, others := c.firstAndOthers(t, m, all...)
	for _, owner := range others {
		for _, a := range all {
			if a != owner {
				c.notMine(a, owner)
			}
		}
		c.replicas[owner].SetGrant(grants(owner))
		for range 3 { // a replica that names another one is not avoided for that
			if got := leaseFrom(t, m, "fn"); got != owner {
				t.Errorf("leased from %s, want %s, which the others name", got, owner)
			}
		}
	}
}

// TestReplicasThatNameEachOther: one of them serves, because the other one was tried.
func TestReplicasThatNameEachOther(t *testing.T) {
	all := []string{"127.0.0.1", "127.0.0.2"}
	c := newCluster(t, all...)
	c.set(all...)
	m := c.manager(t, "pod-manager")
	first, others := c.firstAndOthers(t, m, all...)
	c.notMine(first, others[0])
	c.notMine(others[0], first)
	begin := time.Now()
	if got := leaseFrom(t, m, "fn"); got != others[0] {
		t.Errorf("leased from %s", got)
	}
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("which took %s", took)
	}
}

// TestLostOwnerIsNotNamedAgain has the owner stop: replicas that do not know it yet name it.
func TestLostOwnerIsNotNamedAgain(t *testing.T) {
	all := []string{"127.0.0.1", "127.0.0.2"}
	c := newCluster(t, all...)
	c.set(all...)
	m := c.manager(t, "pod-manager")
	owner, others := c.firstAndOthers(t, m, all...)
	c.notMine(others[0], owner)
	c.replicas[owner].SetGrant(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		return nil, lease.Elsewhere(fault.New(fault.Unavailable, "this pod-manager is shutting down"))
	})
	for range 3 { // while it is avoided, too
		if got := leaseFrom(t, m, "fn"); got != others[0] {
			t.Errorf("leased from %s", got)
		}
	}
}

// TestOwnerThatDNSDoesNotNameCountsAsTried: all replicas name one that is not ready, which no gateway knows.
func TestOwnerThatDNSDoesNotNameCountsAsTried(t *testing.T) {
	all := []string{"127.0.0.1", "127.0.0.2"}
	c := newCluster(t, all...)
	c.set(all...)
	m := c.manager(t, "pod-manager")
	for _, a := range all {
		c.notMine(a, "127.0.0.9")
	}
	waits := 0
	held, err := m.Lease(t.Context(), &lease.Open{Image: "fn"}, func(*lease.Waiting) { waits++ })
	if err != nil || waits > 0 {
		t.Fatalf("%v after %d waits, want a lease at once", err, waits)
	}
	held.Finish(lease.Done, "")
}

// TestOwnerThatALeaseNamesIsAskedNext: any replica grants leases on ready pods, and only the owner knows of all leases.
func TestOwnerThatALeaseNamesIsAskedNext(t *testing.T) {
	all := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	c := newCluster(t, all...)
	c.set(all...)
	const owner = "127.0.0.3"
	for _, a := range all {
		granted := &lease.Granted{Pod: a}
		if a != owner {
			granted.Owner = owner + ":" + c.port
		}
		c.replicas[a].SetGrant(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			return granted, nil
		})
	}
	m := c.manager(t, "pod-manager")
	for range 9 {
		leaseFrom(t, m, "fn")
		if got := leaseFrom(t, m, "fn"); got != owner {
			t.Errorf("leased from %s, and %s is the owner", got, owner)
		}
	}
}
