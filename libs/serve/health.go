package serve

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
)

// Health answers gRPC health checks: SERVING while the process is ready, and
// NOT_SERVING before and after. It is a [grpchealth.Checker].
type Health struct {
	services []string
	ready    atomic.Bool
}

// NewHealth returns the health of a process that serves the named services; the
// empty name, which probes use, is always known.
func NewHealth(services ...string) *Health {
	return &Health{services: services}
}

// Check implements [grpchealth.Checker].
func (h *Health) Check(_ context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if req.Service != "" && !slices.Contains(h.services, req.Service) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("unknown service %q", req.Service))
	}
	if !h.ready.Load() {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}

func (h *Health) setReady(ready bool) { h.ready.Store(ready) }
