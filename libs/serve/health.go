// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
)

// Health is whether the process takes requests. [Run] turns it ready and not
// ready again.
type Health struct {
	ready    atomic.Bool
	once     sync.Once
	stopping chan struct{}
}

// Stopping returns a channel that closes when requests in flight have to finish. Streams
// that would go on for ever, such as watches, end then.
func (h *Health) Stopping() <-chan struct{} {
	h.once.Do(func() { h.stopping = make(chan struct{}) })
	return h.stopping
}

// setStopping is called once.
func (h *Health) setStopping() {
	h.Stopping()
	close(h.stopping)
}

func (h *Health) setReady(ready bool) { h.ready.Store(ready) }

// Checker answers gRPC health checks of the named services, and of the empty name,
// which probes use: SERVING while the process is ready, NOT_SERVING before and
// after.
func (h *Health) Checker(services ...string) grpchealth.Checker {
	return checker{health: h, services: services}
}

type checker struct {
	health   *Health
	services []string
}

func (c checker) Check(_ context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if req.Service != "" && !slices.Contains(c.services, req.Service) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("unknown service %q", req.Service))
	}
	if !c.health.ready.Load() {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
