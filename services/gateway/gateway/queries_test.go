// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/rpcfault"
	"github.com/krm-function-runner/function-runner/libs/testing/leasetest"
)

// clientAt returns a client that calls from an address of this machine.
func clientAt(t *testing.T, address string) *http.Client {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: dialer.DialContext, Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestQueriesAreBounded has one address watch pools as often as it can, and callers at two addresses ask
// for the status.
func TestQueriesAreBounded(t *testing.T) {
	gateway := "http://" + startPods(t, leasetest.NewManager(nil))
	crowd, other := clientAt(t, "127.0.0.1"), clientAt(t, "127.0.0.2")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var watching sync.WaitGroup
	results := make(chan error) // nil for a watch that was admitted
	watch := func() {
		client := podmanagerv1connect.NewPodManagerServiceClient(crowd, gateway, connect.WithGRPC())
		stream, err := client.WatchPools(ctx, &podmanagerv1.WatchPoolsRequest{})
		for err == nil && stream.Receive() {
			results <- nil
		}
		if ctx.Err() == nil {
			results <- rpcfault.FromConnect(cmp.Or(err, stream.Err()))
		}
	}
	admitted, rejected := 0, 0
	for range 100 {
		watching.Go(watch)
		if err := <-results; fault.Of(err) == fault.Exhausted {
			rejected++
		} else if admitted++; err != nil {
			t.Fatal(err)
		}
	}
	if admitted != 16 || rejected != 84 {
		t.Errorf("%d watches of one address were admitted and %d rejected, want 16 and 84", admitted, rejected)
	}
	status := func(client *http.Client) connect.Code {
		_, err := gatewayv1connect.NewStatusServiceClient(client, gateway).GetStatus(t.Context(),
			&gatewayv1.GetStatusRequest{})
		if err == nil {
			return 0
		}
		return connect.CodeOf(err)
	}
	if got := status(crowd); got != connect.CodeResourceExhausted {
		t.Errorf("one more query of the address gets %v, want resource_exhausted", got)
	}
	if got := status(other); got != 0 {
		t.Errorf("another address gets %v", got)
	}
	leave()
	watching.Wait()
	for status(crowd) != 0 && t.Context().Err() == nil { // until the gateway has noticed that the watches have ended
	}
}
