// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/fault"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/cutproxy"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// rawStream opens a stream of the official gRPC client, to end it in other ways than the Client
// does.
func rawStream(t *testing.T, ctx context.Context, address string) (*grpc.ClientConn,
	podmanagerv1.PodManagerService_LeaseClient,
) {
	t.Helper()
	conn := servetest.Dial(t, address)
	s, err := podmanagerv1.NewPodManagerServiceClient(conn).Lease(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return conn, s
}

func sendOpen(t *testing.T, s podmanagerv1.PodManagerService_LeaseClient) {
	t.Helper()
	open := &podmanagerv1.LeaseRequest_Open_{Open: &lease.Open{Image: "fn"}}
	if err := s.Send(&podmanagerv1.LeaseRequest{Message: open}); err != nil {
		t.Fatal(err)
	}
}

func TestALeaseEndsWithItsStream(t *testing.T) {
	tests := map[string]struct {
		reason string
		end    func(conn *grpc.ClientConn, s podmanagerv1.PodManagerService_LeaseClient, cancel func())
		want   lease.Outcome
	}{
		"cancelled": {
			"the holder gave up", func(_ *grpc.ClientConn, _ podmanagerv1.PodManagerService_LeaseClient,
				cancel func(),
			) {
				cancel()
			},
			lease.Abandoned,
		},
		"connection lost": {
			"the holder died", func(conn *grpc.ClientConn, _ podmanagerv1.PodManagerService_LeaseClient,
				_ func(),
			) {
				_ = conn.Close()
			},
			lease.Abandoned,
		},
		"closed": {
			"the holder has nothing to say",
			func(_ *grpc.ClientConn, s podmanagerv1.PodManagerService_LeaseClient, _ func()) { _ = s.CloseSend() },
			lease.Abandoned,
		},
		"another open": {
			"a lease is opened once", func(_ *grpc.ClientConn, s podmanagerv1.PodManagerService_LeaseClient, _ func()) {
				_ = s.Send(&podmanagerv1.LeaseRequest{Message: &podmanagerv1.LeaseRequest_Open_{Open: &lease.Open{}}})
			}, lease.Abandoned,
		},
		"finished without outcome": {
			"unspecified counts as done", func(_ *grpc.ClientConn, s podmanagerv1.PodManagerService_LeaseClient, _ func()) {
				finish := &podmanagerv1.LeaseRequest_Finish_{Finish: &podmanagerv1.LeaseRequest_Finish{}}
				_ = s.Send(&podmanagerv1.LeaseRequest{Message: finish})
			}, lease.Done,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fake := leasetest.NewManager(grantAtOnce)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			conn, s := rawStream(t, ctx, leaseserver.Start(t, fake))
			sendOpen(t, s)
			if resp, err := s.Recv(); err != nil || resp.GetGranted() == nil {
				t.Fatalf("got %v, %v", resp, err)
			}
			tc.end(conn, s, cancel)
			if got := fake.AwaitFinish(t); got.Outcome != tc.want || fake.Active() != 0 {
				t.Errorf("finished with %v, want %v: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestTheFirstMessageIsOpen(t *testing.T) {
	_, s := rawStream(t, t.Context(), leaseserver.Start(t, leasetest.NewManager(grantAtOnce)))
	finish := &podmanagerv1.LeaseRequest_Finish_{Finish: &podmanagerv1.LeaseRequest_Finish{}}
	_ = s.Send(&podmanagerv1.LeaseRequest{Message: finish})
	if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v, want InvalidArgument", err)
	}
}

func TestStopping(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	fake := leasetest.NewManager(func(ctx context.Context, open *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted,
		error,
	) {
		if open.GetImage() == "warm" {
			return &lease.Granted{}, nil
		}
		waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED})
		<-ctx.Done()
		return nil, ctx.Err()
	})
	address := leaseserver.StartUntil(func() context.Context { return stopping }, t, fake)
	m := newClient(t, "http://"+address)
	held, err := m.Lease(t.Context(), &lease.Open{Image: "warm"}, nothing)
	if err != nil {
		t.Fatal(err)
	}
	conn := servetest.Dial(t, address)
	watch, err := podmanagerv1.NewPodManagerServiceClient(conn).WatchPools(t.Context(), &podmanagerv1.WatchPoolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); first.GetSynced() == nil {
		t.Fatalf("the watch begins with %v, %v", first, err)
	}
	if _, err := m.Lease(t.Context(), &lease.Open{Image: "cold"}, func(*lease.Waiting) { stop() }); fault.Of(
		err) != fault.Unavailable {
		t.Errorf("the wait ended with %v, want class unavailable", err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the watch ended with %v, want class unavailable", err)
	}
	if fake.Active() != 1 {
		t.Error("a lease that was granted ended, too")
	}
	held.Finish(lease.Done, "")
	fake.AwaitFinish(t)
}

// TestManagerThatCannotBeReached uses addresses without a server, servers that stop, and servers of
// another protocol.
func TestManagerThatCannotBeReached(t *testing.T) {
	listener := servetest.Listen(t)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	for name, url := range map[string]string{ // the last needs no name server
		"refused": "http://127.0.0.1:1",
		"closes":  "http://" + listener.Addr().String(), "no such host": "http://no..such.host:9448",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := newClient(t, url).Lease(ctx, &lease.Open{}, nothing); fault.Of(err) != fault.Unavailable {
				t.Errorf("error %v of class %v, want unavailable", err, fault.Of(err))
			}
		})
	}
}

// TestLostWhileItWaits breaks the connection of a waiting lease.
func TestLostWhileItWaits(t *testing.T) {
	fake := leasetest.NewManager(func(ctx context.Context, _ *lease.Open, waiting func(*lease.Waiting)) (*lease.Granted,
		error,
	) {
		waiting(&lease.Waiting{Phase: podmanagerv1.Phase_PHASE_QUEUED})
		<-ctx.Done()
		return nil, ctx.Err()
	})
	proxy := cutproxy.New(t, leaseserver.Start(t, fake))
	_, err := newClient(t, "http://"+proxy.Address).Lease(t.Context(), &lease.Open{}, func(*lease.Waiting) { proxy.Cut() })
	if fault.Of(err) != fault.Unavailable {
		t.Errorf("error %v of class %v, want unavailable", err, fault.Of(err))
	}
}

// TestLostWhileHeld breaks the connection of a granted lease: the holder sees no error, and the
// lease ends.
func TestLostWhileHeld(t *testing.T) {
	fake := leasetest.NewManager(grantAtOnce)
	proxy := cutproxy.New(t, leaseserver.Start(t, fake))
	held, err := newClient(t, "http://"+proxy.Address).Lease(t.Context(), &lease.Open{Image: "fn"}, nothing)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Cut()
	if got := fake.AwaitFinish(t); got.Outcome != lease.Abandoned {
		t.Errorf("the manager got %v", got)
	}
	held.Finish(lease.Done, "")
}
