// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
	"github.com/krm-function-runner/function-runner/libs/testing/pipenet"
)

// TestLeaseOfAClientThatIsGone grants a lease at the moment when its client has left.
func TestLeaseOfAClientThatIsGone(t *testing.T) {
	asked := make(chan struct{})
	fake := leasetest.NewManager(func(ctx context.Context, _ *lease.Open, _ func(*lease.Waiting)) (*lease.Granted, error) {
		close(asked)
		<-ctx.Done()
		return &lease.Granted{Pod: "pod"}, nil // it was too late to take it back
	})
	ctx, leave := context.WithCancel(t.Context())
	_, s := rawStream(t, ctx, leaseserver.Start(t, fake))
	sendOpen(t, s)
	<-asked
	leave()
	if got := fake.AwaitFinish(t); got.Outcome != lease.Abandoned || fake.Active() != 0 {
		t.Errorf("finished with %v", got)
	}
}

// TestLeaseThatCannotBeSent has a grant that is larger than answers may be: to the server it is as if the
// client were gone at the grant.
func TestLeaseThatCannotBeSent(t *testing.T) {
	fake := leasetest.NewManager(func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
		return &lease.Granted{Pod: "pod", Reference: strings.Repeat("x", 2<<20)}, nil
	})
	if held, err := connected(t, fake).Lease(t.Context(), &lease.Open{Image: "fn"}, nothing); err == nil {
		t.Errorf("got %v", held.Granted().GetPod())
	}
	if got := fake.AwaitFinish(t); got.Outcome != lease.Abandoned || fake.Active() != 0 {
		t.Errorf("finished with %v", got)
	}
}

// endless grants leases, and never ends their streams by itself.
type endless struct {
	podmanagerv1connect.UnimplementedPodManagerServiceHandler
	streams atomic.Int32
}

func (e *endless) Lease(
	ctx context.Context, s *connect.BidiStream[podmanagerv1.LeaseRequest, podmanagerv1.LeaseResponse],
) error {
	e.streams.Add(1)
	defer e.streams.Add(-1)
	if _, err := s.Receive(); err != nil {
		return err
	}
	granted := &podmanagerv1.LeaseResponse_Granted_{Granted: &lease.Granted{Pod: "pod"}}
	if err := s.Send(&podmanagerv1.LeaseResponse{Message: granted}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestEndOfALeaseIsBounded has a server that does not end the streams of finished leases.
func TestEndOfALeaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network pipenet.Network
		server := new(endless)
		mux := http.NewServeMux()
		mux.Handle(podmanagerv1connect.NewPodManagerServiceHandler(server))
		network.Serve(t, "10.0.0.1:9448", mux)
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: protocols, DialContext: network.Dial}
		defer transport.CloseIdleConnections()
		held, err := lease.NewClient(&http.Client{Transport: transport}, "http://10.0.0.1:9448").
			Lease(t.Context(), &lease.Open{Image: "fn"}, nothing)
		if err != nil {
			t.Fatal(err)
		}
		held.Finish(lease.Done, "")
		<-time.After(time.Minute)
		if n := server.streams.Load(); n != 0 {
			t.Errorf("%d streams are open a minute after their leases", n)
		}
	})
}
