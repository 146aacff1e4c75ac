// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
)

// startCrowded runs a gateway with one slot and the functions hang and echo, and returns a caller
// with one connection, as Porch is, and a channel that gets a value for each request that it sends.
func startCrowded(t *testing.T) (c caller, sent <-chan struct{}) {
	t.Helper()
	address, _ := startBounded(t, 1)
	requests := make(requestsSent, 1000)
	conn, err := grpc.NewClient(address, grpc.WithStatsHandler(requests),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return caller{evaluator.NewFunctionEvaluatorClient(conn), []byte(conformance.List)}, requests
}

// requestsSent gets a value for each request whose headers were sent.
type requestsSent chan struct{}

func (r requestsSent) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); ok {
		r <- struct{}{}
	}
}

func (requestsSent) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (requestsSent) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (requestsSent) HandleConn(context.Context, stats.ConnStats)                       {}

// TestACrowdLeavesTheConnectionToOthers has 300 callers of a function that does not end, on one
// connection, and one caller of another function.
func TestACrowdLeavesTheConnectionToOthers(t *testing.T) {
	c, sent := startCrowded(t)
	ctx, leave := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for range 300 {
		crowd.Go(func() { _ = c.evaluateWithin(ctx, image("hang"), "") })
	}
	for range serve.DefaultMaxStreams {
		<-sent
	}
	evaluateInTime(t, c, image("echo"))
	leave()
	crowd.Wait()
}

// TestACrowdLeavesMemoryToOthers has 20 callers of a function that does not end, whose requests are
// larger together than the memory budget, and callers of another function.
func TestACrowdLeavesMemoryToOthers(t *testing.T) {
	c, _ := startCrowded(t)
	c.list = kibibytes(100)
	ctx, leave := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	rejected := make(chan error, 20)
	for range 20 {
		crowd.Go(func() { rejected <- c.evaluateWithin(ctx, image("hang"), "") })
	}
	for range 13 { // seven are in the budget, of which two wait for others of their function
		if err := <-rejected; status.Code(err) != codes.ResourceExhausted {
			t.Errorf("one of the crowd gets %v, want ResourceExhausted", err)
		}
	}
	evaluateInTime(t, c, image("echo"))
	leave()
	crowd.Wait()
}

// evaluateInTime has a function evaluated a few times.
func evaluateInTime(t *testing.T, c caller, image string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		if err := c.evaluateWithin(ctx, image, ""); err != nil {
			t.Errorf("another function's caller gets %v", err)
		}
	}
}
