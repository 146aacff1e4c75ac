// SPDX-License-Identifier: Apache-2.0

// Package leasetest contains a fake pod-manager. Each test chooses how the fake answers requests for leases.
package leasetest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// Grant answers a request for a lease in a test. It has the same contract as the Lease method of lease.Manager.
type Grant func(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error)

// Finish contains the arguments of a call of a lease's Finish method.
type Finish struct {
	Pod     string
	Outcome lease.Outcome
	Reason  string
}

// Manager is a lease.Manager for tests.
type Manager struct {
	grant    atomic.Pointer[Grant]
	active   atomic.Int64
	finished chan Finish

	mu       sync.Mutex
	pools    map[string]*podmanagerv1.Pool // keys are image digests
	problems []string
}

var _ lease.Manager = (*Manager)(nil)

// NewManager returns a fake pod-manager that answers each request for a lease with the function grant.
func NewManager(grant Grant) *Manager {
	m := &Manager{finished: make(chan Finish, 10_000)}
	m.SetGrant(grant)
	return m
}

// SetGrant replaces the function that answers requests for leases.
func (m *Manager) SetGrant(grant Grant) { m.grant.Store(&grant) }

// Lease implements lease.Manager.
func (m *Manager) Lease(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (lease.Lease, error) {
	granted, err := (*m.grant.Load())(ctx, open, waiting)
	if err != nil {
		return nil, err
	}
	m.active.Add(1)
	return &grantedLease{manager: m, granted: granted}, nil
}

// Active returns the number of granted leases that are not finished yet.
func (m *Manager) Active() int { return int(m.active.Load()) }

// AwaitFinish waits until a lease is finished, and returns the arguments of the call to the lease's Finish method.
func (m *Manager) AwaitFinish(t testing.TB) Finish {
	t.Helper()
	select {
	case f := <-m.finished:
		return f
	case <-t.Context().Done():
		t.Fatal("no lease ended")
		return Finish{}
	}
}

type grantedLease struct {
	manager *Manager
	granted *lease.Granted
	once    sync.Once
}

func (l *grantedLease) Granted() *lease.Granted { return l.granted }

func (l *grantedLease) Finish(outcome lease.Outcome, reason string) {
	l.once.Do(func() {
		l.manager.active.Add(-1)
		l.manager.finished <- Finish{Pod: l.granted.GetPod(), Outcome: outcome, Reason: reason}
	})
}

// SetPools sets the result of ListPools. The pools must have different image digests.
func (m *Manager) SetPools(pools ...*podmanagerv1.Pool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pools = map[string]*podmanagerv1.Pool{}
	for _, p := range pools {
		m.pools[p.GetKey().GetDigest()] = p
	}
}

// SetProblems sets the problems that ListPools returns.
func (m *Manager) SetProblems(problems ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problems = problems
}

// ListPools implements lease.Manager.
func (m *Manager) ListPools(_ context.Context,
	req *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	m.mu.Lock()
	pools, problems := m.pools, m.problems
	m.mu.Unlock()
	resp := &podmanagerv1.ListPoolsResponse{Problems: problems}
	for _, digest := range slices.Sorted(maps.Keys(pools)) {
		if image := req.GetImage(); image == "" || image == pools[digest].GetKey().GetReference() {
			resp.Pools = append(resp.Pools, pools[digest])
		}
	}
	return resp, nil
}
