// SPDX-License-Identifier: Apache-2.0

package replicas_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/replicas"
)

// fleet is replicas on a network in virtual time. Each grants pods with its name.
type fleet struct {
	dns
	network  pipenet.Network
	managers map[string]*leasetest.Manager
	hosts    map[string]*pipenet.Host
	client   *replicas.Client
}

// newFleet starts replicas and a gateway's client of them, which has found their addresses.
func newFleet(t *testing.T, addresses ...string) *fleet {
	t.Helper()
	f := &fleet{managers: map[string]*leasetest.Manager{}, hosts: map[string]*pipenet.Host{}}
	for _, a := range addresses {
		f.managers[a] = leasetest.NewManager(grants(a))
		mux := http.NewServeMux()
		mux.Handle(podmanagerv1connect.NewPodManagerServiceHandler(lease.Handler(t.Context, f.managers[a]),
			connect.WithInterceptors(rpcfault.Interceptor())))
		mux.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker()))
		f.hosts[a] = f.network.Serve(t, a+":9448", mux)
	}
	f.set(addresses...)
	f.client = managerAt(t, "http://pod-manager:9448", rpcclient.OverNetwork(f.network.Dial, f.lookup))
	synctest.Wait()
	return f
}

// nameOwner has all replicas but the owner name it to callers that have not tried it.
func (f *fleet) nameOwner(owner string) {
	for a, m := range f.managers {
		if a == owner {
			continue
		}
		m.SetGrant(func(_ context.Context, open *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
			if slices.Contains(open.GetTried(), owner+":9448") {
				return &lease.Granted{Pod: a}, nil
			}
			return nil, lease.OwnedBy(owner+":9448", fault.New(fault.Unavailable, "another pod-manager owns the function"))
		})
	}
}

// leases leases the image n times, one a second, and returns how long each took.
func (f *fleet) leases(t *testing.T, n int) (took []time.Duration, from []string) {
	t.Helper()
	for range n {
		begin := time.Now()
		from = append(from, leaseFrom(t, f.client, "fn"))
		took = append(took, time.Since(begin))
		<-time.After(time.Second)
	}
	return took, from
}

func TestSilentReplicaIsNoticedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		owner := leaseFrom(t, f.client, "fn")
		f.nameOwner(owner)
		f.hosts[owner].SetSilent(true)
		took, from := f.leases(t, 30)
		if slices.Contains(from, owner) {
			t.Errorf("leased from %v, and %s is silent", from, owner)
		}
		if took[0] > 2*time.Second || slices.Max(took[1:]) > 0 {
			t.Errorf("leases took %v: want the first within two seconds, and no wait again", took)
		}
		f.hosts[owner].SetSilent(false)
		<-time.After(3 * time.Second)
		if _, from = f.leases(t, 3); !slices.Equal(from, []string{owner, owner, owner}) {
			t.Errorf("leased from %v once %s answers again", from, owner)
		}
		if n := f.managers[owner].Active(); n != 0 {
			t.Errorf("%d leases are held that no caller has", n)
		}
	})
}

func TestKilledReplicaDelaysNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2", "10.0.0.3")
		owner := leaseFrom(t, f.client, "fn")
		f.nameOwner(owner)
		f.hosts[owner].Kill()
		took, from := f.leases(t, 30)
		if slices.Contains(from, owner) || slices.Max(took) > 0 {
			t.Errorf("leases took %v from %v", took, from)
		}
		f.hosts[owner].Revive()
		<-time.After(3 * time.Second)
		if _, from = f.leases(t, 1); from[0] != owner {
			t.Errorf("leased from %v once %s is back", from, owner)
		}
	})
}

// TestAddressesStayWhenNoReplicaIsReady: replicas that have lost the API are not ready, and still lease ready
// pods.
func TestAddressesStayWhenNoReplicaIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2")
		owner := leaseFrom(t, f.client, "fn")
		f.set()
		<-time.After(time.Hour)
		if took, from := f.leases(t, 3); slices.Max(took) > 0 || !slices.Equal(from, []string{owner, owner, owner}) {
			t.Errorf("leases took %v from %v", took, from)
		}
	})
}

// TestSlowReplicaAnswersInTheEnd: with all replicas slow, the first answer counts, and what comes later
// is given back.
func TestSlowReplicaAnswersInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2")
		owner := leaseFrom(t, f.client, "fn")
		for a, m := range f.managers {
			m.SetGrant(func(ctx context.Context, _ *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
				select {
				case <-time.After(4 * time.Second):
					return &lease.Granted{Pod: a}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
		}
		begin := time.Now()
		if got := leaseFrom(t, f.client, "fn"); got != owner || time.Since(begin) != 4*time.Second {
			t.Errorf("leased from %s after %s, want %s, which was asked first", got, time.Since(begin), owner)
		}
		<-time.After(time.Minute)
		for a, m := range f.managers {
			if m.Active() != 0 {
				t.Errorf("%s has %d leases that no caller has", a, m.Active())
			}
		}
	})
}

// TestReplicaThatReportsAWaitIsNotSilent: a cold start may take a minute.
func TestReplicaThatReportsAWaitIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2")
		owner := leaseFrom(t, f.client, "fn")
		f.managers[owner].SetGrant(func(
			_ context.Context, _ *lease.Open, waiting func(*lease.Waiting),
		) (*lease.Granted, error) {
			waiting(&lease.Waiting{Reason: "creating the pod"})
			<-time.After(time.Minute)
			return &lease.Granted{Pod: owner}, nil
		})
		if got := leaseFrom(t, f.client, "fn"); got != owner {
			t.Errorf("leased from %s", got)
		}
	})
}

// TestReplicaThatGrantsNoLeasesIsAskedOnce: what another replica has granted is leased from that one again.
func TestReplicaThatGrantsNoLeasesIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2")
		owner := leaseFrom(t, f.client, "fn")
		asked := 0
		f.managers[owner].SetGrant(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			asked++
			return nil, lease.Elsewhere(fault.New(fault.Unavailable, "this replica does not know the cluster yet"))
		})
		for range 20 {
			leaseFrom(t, f.client, "fn")
		}
		if asked != 1 {
			t.Errorf("%s was asked %d times, and had no lease", owner, asked)
		}
	})
}

// TestLeaseFailsIfNoReplicaAnswersForLong: a single pod-manager has restarted by then.
func TestLeaseFailsIfNoReplicaAnswersForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1")
		f.hosts["10.0.0.1"].Kill()
		begin := time.Now()
		_, err := f.client.Lease(t.Context(), &lease.Open{Image: "fn"}, func(*lease.Waiting) {})
		if fault.Of(err) != fault.Unavailable || !strings.Contains(err.Error(), "no pod-manager could be reached for 15s") {
			t.Errorf("error %v", err)
		}
		if lease.IsElsewhere(err) {
			t.Error("the error tells the caller to ask another pod-manager")
		}
		if took := time.Since(begin); took < 10*time.Second || took > 16*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestReplacedReplicaIsFoundAtOnce: a call that did not reach a replica has the name looked up.
func TestReplacedReplicaIsFoundAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2")
		f.set("10.0.0.1")
		<-time.After(10 * time.Second)
		leaseFrom(t, f.client, "fn")
		<-time.After(time.Second) // the addresses have been looked up again
		leaseFrom(t, f.client, "fn")
		f.hosts["10.0.0.1"].Kill()
		f.set("10.0.0.2")
		begin := time.Now()
		if got := leaseFrom(t, f.client, "fn"); got != "10.0.0.2" || time.Since(begin) > time.Second {
			t.Errorf("leased from %s after %v", got, time.Since(begin))
		}
	})
}

// TestIdleGatewayLooksAddressesUp: all replicas may have moved meanwhile, to hosts that drop what is sent to others.
func TestIdleGatewayLooksAddressesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "10.0.0.1", "10.0.0.2")
		f.set("10.0.0.1")
		<-time.After(10 * time.Second)
		leaseFrom(t, f.client, "fn")
		f.set("10.0.0.2")
		f.hosts["10.0.0.1"].SetSilent(true)
		<-time.After(time.Hour)
		if took, from := f.leases(t, 1); took[0] > 0 || from[0] != "10.0.0.2" {
			t.Errorf("leased from %s after %v", from[0], took[0])
		}
	})
}
