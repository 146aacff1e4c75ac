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

// Health is the health of this process, as health checks report it. [Run] sets it to ready and to not ready.
type Health struct {
	ready atomic.Bool
	// able contains the function Able of each component, which health checks of a named service call.
	able atomic.Pointer[[]func() bool]
	// explain returns the current problems that an operator must solve, for health checks. It may be nil.
	explain  func() []string
	once     sync.Once
	stopping context.Context //nolint:containedctx // done when the process stops, for all of its streams
	stop     context.CancelFunc
}

// Explain adds problems to the answers of health checks. The function details returns a sentence for each problem
// that an operator must solve before the process can work. Call Explain before the process serves requests.
func (h *Health) Explain(details func() []string) { h.explain = details }

// Stopping returns a context that is done when the process stops accepting requests. Streams without an end, such as
// watches, must then return, because the process waits for running requests.
func (h *Health) Stopping() context.Context {
	h.once.Do(func() { h.stopping, h.stop = context.WithCancel(context.Background()) })
	return h.stopping
}

// setStopping ends the context that Stopping returns.
func (h *Health) setStopping() {
	h.Stopping()
	h.stop()
}

func (h *Health) setReady(ready bool) { h.ready.Store(ready) }

// watchComponents stores the function Able of each component, for later health checks.
func (h *Health) watchComponents(components []Component) {
	var able []func() bool
	for _, component := range components {
		if component.Able != nil {
			able = append(able, component.Able)
		}
	}
	h.able.Store(&able)
}

// isServing reports whether the process is ready, as the answer to a health check. If the check names a service,
// each component must also be able to work. Liveness probes name no service, because Kubernetes should not restart
// the process when a component cannot work for a while.
func (h *Health) isServing(service string) bool {
	able := h.able.Load()
	unable := func(able func() bool) bool { return !able() }
	return h.ready.Load() && (service == "" || able == nil || !slices.ContainsFunc(*able, unable))
}

// Checker returns a checker for gRPC health checks of the given services, and of the empty name, which Kubernetes'
// probes send. The checker answers SERVING while the process is ready, and otherwise NOT_SERVING. For a named
// service, it also answers NOT_SERVING while a component cannot work.
func (h *Health) Checker(services ...string) grpchealth.Checker {
	return checker{health: h, services: services}
}

// maxDetailBytes is the maximum length of a problem in a health check's answer. Problems are sent in a header.
const maxDetailBytes = 1 << 10

// replaceUnprintable replaces characters that are not permitted in gRPC headers by question marks.
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

// DetailHeader is the response header of health checks that contains the problems of the process.
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
