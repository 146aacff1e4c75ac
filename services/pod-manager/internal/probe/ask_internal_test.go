// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// hanging is a health service that does not answer its first question.
type hanging struct {
	healthv1.UnimplementedHealthServer
	asked atomic.Int32
}

func (h *hanging) Check(ctx context.Context, _ *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	if h.asked.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}, nil
}

// TestAQuestionHasABound has a server not answer, and answer when it is asked again.
func TestAQuestionHasABound(t *testing.T) {
	l := servetest.Listen(t)
	s := grpc.NewServer()
	healthv1.RegisterHealthServer(s, new(hanging))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }() // it is stopped
	t.Cleanup(func() { s.Stop(); <-ended })
	ctx, cancel := context.WithTimeout(t.Context(), 20*askTimeout)
	defer cancel()
	if err := (asker{}).probeUntilServing(ctx, pool.Probe{Address: l.Addr().String()}); err != nil {
		t.Errorf("the server is not asked again: %v", err)
	}
}
