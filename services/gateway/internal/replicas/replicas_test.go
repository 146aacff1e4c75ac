// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/ownership"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/cutproxy"
	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/replicas"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dns is what the name of the pod-manager stands for now.
type dns struct {
	mu        sync.Mutex
	addresses []string
}

func (d *dns) set(addresses ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addresses = addresses
}

func (d *dns) lookup(_ context.Context, host string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{host}, nil
	}
	if len(d.addresses) == 0 {
		return nil, errors.New("no such host")
	}
	return append([]string{}, d.addresses...), nil
}

// cluster is replicas on addresses of their own, with one port.
type cluster struct {
	dns
	port     string
	replicas map[string]*leasetest.Manager
	proxies  map[string]*cutproxy.Proxy
}

// grants returns a Grant of leases on the pod of this name.
func grants(pod string) leasetest.Grant {
	return func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		return &lease.Granted{Pod: pod}, nil
	}
}

// newCluster starts replicas at addresses, of which DNS knows nothing yet. Each lends
// pods that have its name.
func newCluster(t *testing.T, addresses ...string) *cluster {
	t.Helper()
	c := &cluster{
		replicas: map[string]*leasetest.Manager{}, proxies: map[string]*cutproxy.Proxy{}, port: freeport.Choose(t),
	}
	for _, a := range addresses {
		c.replicas[a] = leasetest.NewManager(grants(a))
		c.replicas[a].SetPools(&podmanagerv1.Pool{
			Key: &podmanagerv1.PoolKey{Reference: "fn", Digest: "sha256:" + a}, Replica: a,
		})
		c.proxies[a] = cutproxy.NewAt(t, a+":"+c.port, leaseserver.Start(t, c.replicas[a]))
	}
	return c
}

// manager returns a client of the cluster that runs until the test ends.
func (c *cluster) manager(t *testing.T, host string) *replicas.Client {
	t.Helper()
	// On a busy machine, a connection may take longer than the client's timeout: here, it has none.
	network := rpcclient.OverNetwork(new(net.Dialer).DialContext, c.lookup)
	return managerAt(t, "http://"+net.JoinHostPort(host, c.port), network)
}

// managerAt returns a client of the replicas at a URL that runs until the test ends.
func managerAt(t *testing.T, url string, options ...rpcclient.Option) *replicas.Client {
	t.Helper()
	service, err := rpcclient.New(url, nil, telemetry.Discard(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	return replicas.New(service, url)
}

// leaseFrom returns which replica answered.
func leaseFrom(t *testing.T, m lease.Manager, image string) string {
	t.Helper()
	held, err := m.Lease(t.Context(), &lease.Open{Image: image}, func(*lease.Waiting) {})
	if err != nil {
		t.Fatal(err)
	}
	held.Finish(lease.Done, "")
	return held.Granted().GetPod()
}

func TestAnAddressInPlaceOfAName(t *testing.T) {
	m := newCluster(t, "127.0.0.1").manager(t, "127.0.0.1")
	if got := leaseFrom(t, m, "fn"); got != "127.0.0.1" {
		t.Errorf("leased from %s", got)
	}
}

// TestEachFunctionIsLeasedFromItsOwner: a gateway finds the owner by redirects, once.
func TestEachFunctionIsLeasedFromItsOwner(t *testing.T) {
	all := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	c := newCluster(t, all...)
	c.set(all...)
	ownerOf := func(image string) string { return all[ownership.Owner(all, image)] }
	var asked atomic.Int32
	for _, a := range all {
		c.replicas[a].SetGrant(func(_ context.Context, open *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
			asked.Add(1)
			if owner := ownerOf(open.GetImage()); owner != a {
				return nil, lease.OwnedBy(owner+":"+c.port, fault.New(fault.Unavailable, "another pod-manager owns it"))
			}
			return &lease.Granted{Pod: a}, nil
		})
	}
	for range 2 { // gateways
		m := c.manager(t, "pod-manager")
		for round, most := range []int32{60, 30} {
			asked.Store(0)
			for i := range 30 {
				image := fmt.Sprint("fn", i)
				if got := leaseFrom(t, m, image); got != ownerOf(image) {
					t.Errorf("%s was leased from %s, want its owner %s", image, got, ownerOf(image))
				}
			}
			if n := asked.Load(); n > most {
				t.Errorf("round %d of 30 leases took %d requests, want %d at most", round, n, most)
			}
		}
	}
}

func TestAReplicaThatIsNotThere(t *testing.T) {
	c := newCluster(t, "127.0.0.1")
	c.set("127.0.0.1", "127.0.0.2")
	m := c.manager(t, "pod-manager")
	for i := range 10 {
		if got := leaseFrom(t, m, fmt.Sprint("fn", i)); got != "127.0.0.1" {
			t.Errorf("leased from %s", got)
		}
	}
}

// TestAReplicaThatDies breaks the connections of one that has leases waiting.
func TestAReplicaThatDies(t *testing.T) {
	c := newCluster(t, "127.0.0.1", "127.0.0.2")
	c.set("127.0.0.1", "127.0.0.2")
	m := c.manager(t, "pod-manager")
	owner := leaseFrom(t, m, "fn")
	var cut atomic.Bool
	c.replicas[owner].SetGrant(func(
		ctx context.Context, _ *lease.Open, waiting func(*lease.Waiting),
	) (*lease.Granted, error) {
		waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED})
		<-ctx.Done()
		return nil, ctx.Err()
	})
	held, err := m.Lease(t.Context(), &lease.Open{Image: "fn"}, func(*lease.Waiting) {
		if !cut.Swap(true) {
			c.proxies[owner].Cut()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := held.Granted().GetPod(); got == owner {
		t.Errorf("leased from %s, which is dead", got)
	}
	held.Finish(lease.Done, "")
}

// TestAPodManagerThatComesLater has no replica in DNS at first, and then one at another
// address.
func TestAPodManagerThatComesLater(t *testing.T) {
	c := newCluster(t, "127.0.0.2")
	c.set("127.0.0.1")
	m := c.manager(t, "pod-manager")
	rounds := 0
	held, err := m.Lease(t.Context(), &lease.Open{Image: "fn"}, func(*lease.Waiting) {
		if rounds++; rounds == 2 {
			c.set("127.0.0.2")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	held.Finish(lease.Done, "")
	if got := held.Granted().GetPod(); got != "127.0.0.2" {
		t.Errorf("leased from %s", got)
	}
}

func TestErrorsOfTheOwnerAreTheAnswer(t *testing.T) {
	tests := map[string]struct {
		reason string
		class  fault.Class
	}{
		"no such image":    {"all replicas would say so", fault.Precondition},
		"registry is away": {"the registry is, not the pod-manager: the caller is told at once", fault.Unavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			for _, a := range []string{"127.0.0.1", "127.0.0.2"} {
				m := leasetest.NewManager(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
					return nil, fault.New(tc.class, "%s says no", a)
				})
				cutproxy.NewAt(t, a+":"+c.port, leaseserver.Start(t, m))
			}
			c.set("127.0.0.1", "127.0.0.2")
			_, err := c.manager(t, "pod-manager").Lease(t.Context(), &lease.Open{Image: "fn"}, func(*lease.Waiting) {})
			if fault.Of(err) != tc.class || !strings.HasPrefix(err.Error(), "127.0.0.") {
				t.Errorf("error %v, want the owner's: %s", err, tc.reason)
			}
		})
	}
}

func TestACallerThatGivesUpWhileNoReplicaIsThere(t *testing.T) {
	c := newCluster(t)
	ctx, leave := context.WithCancel(t.Context())
	_, err := c.manager(t, "pod-manager").Lease(ctx, &lease.Open{Image: "fn"}, func(*lease.Waiting) { leave() })
	if fault.Of(err) != fault.Canceled {
		t.Errorf("error %v of class %v, want canceled", err, fault.Of(err))
	}
}

// TestPoolsWaitForAReplica: a gateway that has just started knows none yet.
func TestPoolsWaitForAReplica(t *testing.T) {
	c := newCluster(t, "127.0.0.1")
	m := c.manager(t, "pod-manager")
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := m.ListPools(short, &podmanagerv1.ListPoolsRequest{}); err == nil ||
		!strings.Contains(err.Error(), "no such host") {
		t.Errorf("error %v, want why no replica is known", err)
	}
	time.AfterFunc(100*time.Millisecond, func() { c.set("127.0.0.1") })
	if list, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{}); err != nil || len(list.GetPools()) != 1 {
		t.Errorf("listed %v, %v, want the pool of the replica that came", list, err)
	}
}

// TestPoolsOfOneFunction has both replicas see the same pod: it is listed once.
func TestPoolsOfOneFunction(t *testing.T) {
	c := newCluster(t, "127.0.0.1", "127.0.0.2")
	for _, replica := range c.replicas {
		replica.SetPools(&podmanagerv1.Pool{
			Key:    &podmanagerv1.PoolKey{Reference: "fn"},
			Active: 1,
			Pods:   []*podmanagerv1.Pod{{Name: "fn-1", Active: 1}},
		})
	}
	c.set("127.0.0.1", "127.0.0.2")
	m := c.manager(t, "pod-manager")
	list, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
	pools := list.GetPools()
	if err != nil || len(pools) != 1 || len(pools[0].GetPods()) != 1 || pools[0].GetPods()[0].GetActive() != 2 {
		t.Errorf("listed %v, %v, want one pool with one pod that has two leases", list, err)
	}
}

func TestPoolsOfAllReplicas(t *testing.T) {
	c := newCluster(t, "127.0.0.1", "127.0.0.2")
	c.set("127.0.0.1", "127.0.0.2", "127.0.0.3") // the last is not there
	for _, replica := range c.replicas {
		replica.SetProblems("both know it")
	}
	m := c.manager(t, "pod-manager")
	list, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
	if err != nil || len(list.GetPools()) != 2 || list.GetPools()[0].GetReplica() != "127.0.0.1" {
		t.Errorf("listed %v, %v", list, err)
	}
	silent := "127.0.0.3:" + c.port + " does not list its pods"
	if got := list.GetProblems(); len(got) != 2 || got[0] != "both know it" || !strings.Contains(got[1], silent) {
		t.Errorf("listed the problems %q, want the replica that does not answer", got)
	}
	c.set("127.0.0.1") // the others go
	for len(list.GetPools()) > 1 && err == nil {
		list, err = m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{})
	}
	if err != nil {
		t.Error(err)
	}
}
