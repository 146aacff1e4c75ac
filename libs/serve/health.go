// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
)

// Health is the health of the process. [Run] makes it ready and not ready.
type Health struct {
	ready atomic.Bool
	// able contains the components' own conditions.
	able atomic.Pointer[[]func() bool]
	// explain returns problems that keep the process from its work until someone solves them.
	explain  func() []string
	once     sync.Once
	stopping chan struct{}
}

// Explain adds details to the answers of health checks: problems that keep the process from its work until someone
// solves them. It must be called before the process serves.
func (h *Health) Explain(details func() []string) { h.explain = details }

// Stopping returns a channel that is closed when running requests should end. Endless streams, such as watches, must
// return then.
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

// watchComponents stores the components' conditions.
func (h *Health) watchComponents(components []Component) {
	var able []func() bool
	for _, component := range components {
		if component.Able != nil {
			able = append(able, component.Able)
		}
	}
	h.able.Store(&able)
}

// isServing reports whether the process serves requests now. If service is not empty, all components must be able to
// work. Liveness probes send no name: a component that cannot work now is no reason to restart all components.
func (h *Health) isServing(service string) bool {
	able := h.able.Load()
	unable := func(able func() bool) bool { return !able() }
	return h.ready.Load() && (service == "" || able == nil || !slices.ContainsFunc(*able, unable))
}

// Checker answers gRPC health checks of the named services, and of the empty name, which probes use: SERVING while the
// process is ready, and NOT_SERVING before and afterwards. A named service is NOT_SERVING also while a component cannot
// work.
func (h *Health) Checker(services ...string) grpchealth.Checker {
	return checker{health: h, services: services}
}

// maxDetailBytes limits a detail, which is sent as a header.
const maxDetailBytes = 1 << 10

// replaceUnprintable replaces characters that gRPC does not permit in headers.
func replaceUnprintable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

type checker struct {
	health   *Health
	services []string
}

// DetailHeader is the header of details in the answers of health checks.
const DetailHeader = "Fn-Health-Detail"

func (c checker) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if req.Service != "" && !slices.Contains(c.services, req.Service) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("unknown service %q", req.Service))
	}
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok && c.health.explain != nil {
		for _, detail := range c.health.explain() {
			detail, _ = excerpt.Start(strings.Map(replaceUnprintable, detail), maxDetailBytes)
			info.ResponseHeader().Add(DetailHeader, detail)
		}
	}
	if !c.health.isServing(req.Service) {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
