// SPDX-License-Identifier: Apache-2.0

package rpcclient_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest/leaseserver"
)

// TestCrowdSharesConnections: hundreds of calls begin before there is a connection, as after a takeover,
// and all get their answers at a server that accepts few connections from one address.
func TestCrowdSharesConnections(t *testing.T) {
	const calls = 1000
	address := leaseserver.Start(t, leasetest.NewManager(
		func(context.Context, *lease.Open, func(*lease.Waiting)) (*lease.Granted, error) {
			return &lease.Granted{Pod: "pod"}, nil
		}))
	// A busy machine may need more than a second for a connection: no timeout ends the attempt to open it.
	network := rpcclient.OverNetwork(new(net.Dialer).DialContext, net.DefaultResolver.LookupHost)
	client, err := rpcclient.New("http://"+address, nil, telemetry.Discard(), network)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	leases := lease.NewClient(client.HTTP, "http://"+address, client.Options...)
	var callers, granted sync.WaitGroup
	var failed atomic.Int32
	granted.Add(calls)
	for range calls {
		callers.Go(func() {
			held, err := leases.Lease(t.Context(), &lease.Open{Image: "fn"}, func(*lease.Waiting) {})
			granted.Done()
			if err != nil {
				failed.Add(1)
				t.Logf("lease: %v", err)
				return
			}
			defer held.Finish(lease.Done, "")
			granted.Wait() // all hold their leases at the same time
		})
	}
	callers.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of %d calls failed", n, calls)
	}
}
