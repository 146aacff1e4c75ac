// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ways are the ways to reach a manager: it behaves the same in each.
var ways = map[string]func(*testing.T, lease.Manager) lease.Manager{
	"in the process": func(_ *testing.T, m lease.Manager) lease.Manager { return m },
	"over HTTP/2":    connected,
}

// connected returns a client of a server of m.
func connected(t *testing.T, m lease.Manager) lease.Manager {
	t.Helper()
	return newClient(t, "http://"+leaseserver.Start(t, m))
}

func newClient(t *testing.T, url string) *lease.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	// Calls before the first connection open one each, and the server accepts few from one address.
	transport := &http.Transport{Protocols: protocols, MaxConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return lease.NewClient(&http.Client{Transport: transport}, url)
}

// each runs a test in each way.
func each(t *testing.T, grant leasetest.Grant, test func(t *testing.T, fake *leasetest.Manager, m lease.Manager)) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			fake := leasetest.NewManager(grant)
			test(t, fake, way(t, fake))
		})
	}
}

func nothing(*lease.Waiting) {}

// grantAtOnce grants a lease without a wait.
func grantAtOnce(_ context.Context, open *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
	return &lease.Granted{Address: "10.0.0.1:9446", Pod: "pod-of-" + open.GetImage()}, nil
}

func TestGrantAndFinish(t *testing.T) {
	for _, want := range []leasetest.Finish{
		{Pod: "pod-of-fn", Outcome: lease.Done},
		{Pod: "pod-of-fn", Outcome: lease.PodBroken, Reason: "connection refused"},
		{Pod: "pod-of-fn", Outcome: lease.Abandoned, Reason: "the caller left"},
	} {
		each(t, grantAtOnce, func(t *testing.T, fake *leasetest.Manager, m lease.Manager) {
			held, err := m.Lease(t.Context(), &lease.Open{Image: "fn"}, nothing)
			if err != nil {
				t.Fatal(err)
			}
			if got := held.Granted().GetAddress(); got != "10.0.0.1:9446" || fake.Active() != 1 {
				t.Errorf("address %q, %d active", got, fake.Active())
			}
			held.Finish(want.Outcome, want.Reason)
			held.Finish(lease.PodBroken, "the second does nothing")
			if got := fake.AwaitFinish(t); got != want {
				t.Errorf("finished with %v, want %v", got, want)
			}
			if fake.Active() != 0 {
				t.Error("the lease is still held")
			}
		})
	}
}

func TestOpenArrivesWhole(t *testing.T) {
	var got *lease.Open
	each(t, func(_ context.Context, open *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
		got = open
		return nil, fault.New(fault.Denied, "no")
	}, func(t *testing.T, _ *leasetest.Manager, m lease.Manager) {
		_, _ = m.Lease(t.Context(), &lease.Open{
			Image: "fn:v1", TagConstraint: "~1", Attempt: 2,
			AvoidPods: []string{"a", "b"},
		}, nothing)
		if got.GetImage() != "fn:v1" || got.GetTagConstraint() != "~1" || got.GetAttempt() != 2 ||
			len(got.GetAvoidPods()) != 2 {
			t.Errorf("the manager got %v", got)
		}
	})
}

func TestWaitingIsReportedInOrder(t *testing.T) {
	phases := []podmanagerv1.Phase{
		podmanagerv1.Phase_PHASE_QUEUED, podmanagerv1.Phase_PHASE_CREATING,
		podmanagerv1.Phase_PHASE_PULLING,
	}
	each(t, func(_ context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
		for i, p := range phases {
			waiting(&lease.Waiting{Phase: p, Reason: p.String(), Position: int32(i)})
		}
		return &lease.Granted{}, nil
	}, func(t *testing.T, fake *leasetest.Manager, m lease.Manager) {
		var reported []podmanagerv1.Phase
		held, err := m.Lease(t.Context(), &lease.Open{}, func(w *lease.Waiting) { reported = append(reported, w.GetPhase()) })
		if err != nil {
			t.Fatal(err)
		}
		held.Finish(lease.Done, "")
		fake.AwaitFinish(t)
		if fmt.Sprint(reported) != fmt.Sprint(phases) {
			t.Errorf("reported %v, want %v", reported, phases)
		}
	})
}

func TestErrorsKeepClassTextAndHint(t *testing.T) {
	for _, class := range []fault.Class{
		fault.Invalid, fault.Denied, fault.Precondition, fault.Exhausted,
		fault.Unavailable, fault.Internal,
	} {
		each(t, func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			return nil, fault.WithRetryAfter(fault.New(class, "in the registry's own words"), 3*time.Second)
		}, func(t *testing.T, _ *leasetest.Manager, m lease.Manager) {
			_, err := m.Lease(t.Context(), &lease.Open{}, nothing)
			after, _ := fault.RetryAfter(err)
			if fault.Of(err) != class || err.Error() != "in the registry's own words" || after != 3*time.Second {
				t.Errorf("error %v of class %v, retry after %v; want class %v", err, fault.Of(err), after, class)
			}
		})
	}
}

func TestCallerCancelsWhileWaiting(t *testing.T) {
	var came, left atomic.Int32
	each(t, func(ctx context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted, error) {
		came.Add(1)
		defer left.Add(1)
		waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED})
		<-ctx.Done()
		return nil, ctx.Err()
	}, func(t *testing.T, fake *leasetest.Manager, m lease.Manager) {
		came.Store(0)
		left.Store(0)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		if _, err := m.Lease(ctx, &lease.Open{}, func(*lease.Waiting) { leave() }); fault.Of(err) != fault.Canceled {
			t.Errorf("error %v of class %v, want canceled", err, fault.Of(err))
		}
		// On a busy machine the deadline may pass before the call arrives.
		for timeout := 20 * time.Millisecond; came.Load() < 2; timeout *= 2 {
			short, leave := context.WithTimeout(t.Context(), timeout)
			if _, err := m.Lease(short, &lease.Open{}, nothing); fault.Of(err) != fault.DeadlineExceeded {
				t.Fatalf("error %v of class %v, want deadline exceeded", err, fault.Of(err))
			}
			leave()
		}
		await.Equal(t, "callers that left", left.Load, came.Load())
		if fake.Active() != 0 {
			t.Error("a lease is held without a holder")
		}
	})
}

func TestALeaseOutlivesItsContext(t *testing.T) {
	each(t, grantAtOnce, func(t *testing.T, fake *leasetest.Manager, m lease.Manager) {
		ctx, leave := context.WithCancel(t.Context())
		held, err := m.Lease(ctx, &lease.Open{Image: "fn"}, nothing)
		leave()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{}); err != nil { // a round trip
			t.Fatal(err)
		}
		if fake.Active() != 1 {
			t.Error("the lease ended with the context of its wait")
		}
		held.Finish(lease.PodBroken, "found out later")
		if got := fake.AwaitFinish(t); got.Outcome != lease.PodBroken {
			t.Errorf("finished with %v", got)
		}
	})
}

func TestManyAtATime(t *testing.T) {
	each(t, grantAtOnce, func(t *testing.T, fake *leasetest.Manager, m lease.Manager) {
		var callers sync.WaitGroup
		for i := range 200 {
			callers.Go(func() {
				image := fmt.Sprint("fn", i)
				held, err := m.Lease(t.Context(), &lease.Open{Image: image}, nothing)
				if err != nil || held.Granted().GetPod() != "pod-of-"+image {
					t.Errorf("got %v, %v", held, err)
					return
				}
				held.Finish(lease.Done, "")
			})
		}
		callers.Wait()
		if t.Failed() {
			return // a lease that was not granted does not end
		}
		for range 200 {
			if got := fake.AwaitFinish(t); got.Outcome != lease.Done {
				t.Errorf("finished with %v", got)
			}
		}
	})
}

func pool(name string) *podmanagerv1.Pool {
	return &podmanagerv1.Pool{Key: &podmanagerv1.PoolKey{Reference: name, Digest: "sha256:" + name}}
}

func TestPools(t *testing.T) {
	each(t, grantAtOnce, func(t *testing.T, fake *leasetest.Manager, m lease.Manager) {
		fake.SetPools(pool("a"), pool("b"))
		list, err := m.ListPools(t.Context(), &podmanagerv1.ListPoolsRequest{Image: "b"})
		if err != nil || len(list.GetPools()) != 1 || list.GetPools()[0].GetKey().GetReference() != "b" {
			t.Errorf("listed %v, %v", list, err)
		}
	})
}

func TestOwnerTravels(t *testing.T) {
	for _, owner := range []string{"10.0.0.1:9448", ""} {
		m := leasetest.NewManager(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			return nil, lease.OwnedBy(owner, fault.New(fault.Unavailable, "another pod-manager owns the function"))
		})
		_, err := connected(t, m).Lease(t.Context(), &lease.Open{Image: "fn"}, func(*lease.Waiting) {})
		if !lease.IsElsewhere(err) || lease.OwnerOf(err) != owner || fault.Of(err) != fault.Unavailable {
			t.Errorf("error %v names %q, want %q", err, lease.OwnerOf(err), owner)
		}
	}
}
