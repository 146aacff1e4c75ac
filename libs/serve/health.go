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

// Health is the state of this process for health checks. [Run] marks the process as ready or not ready.
type Health struct {
	ready atomic.Bool
	// able reports whether the process can currently work. It is nil if Health.Require was not called.
	able func() bool
	// explain returns the problems that health checks report. It is nil if Health.Explain was not called.
	explain  func() []string
	once     sync.Once
	stopping context.Context //nolint:containedctx // done when the process stops, for all of its streams
	stop     context.CancelFunc
}

// Explain makes health checks report problems. Each health check calls the function details, which returns a sentence
// for each fault that an operator must fix. Call Explain before the process serves requests.
func (h *Health) Explain(details func() []string) { h.explain = details }

// Require makes health checks of a named service call the function able. They answer NOT_SERVING while able returns
// false. Call Require at most once, before the process serves requests.
func (h *Health) Require(able func() bool) { h.able = able }

// Stopping returns a context that is done when the process stops accepting requests. Watches and other endless streams
// must then return, because the process waits for running requests.
func (h *Health) Stopping() context.Context {
	h.once.Do(func() { h.stopping, h.stop = context.WithCancel(context.Background()) })
	return h.stopping
}

// setStopping cancels the context that Stopping returns.
func (h *Health) setStopping() {
	h.Stopping()
	h.stop()
}

func (h *Health) setReady(ready bool) { h.ready.Store(ready) }

// isServing reports whether a health check succeeds. The process must be ready. If the health check names a service,
// the process must also be able to work. Liveness probes name no service, so that Kubernetes does not restart a process
// that temporarily cannot work.
func (h *Health) isServing(service string) bool {
	return h.ready.Load() && (service == "" || h.able == nil || h.able())
}

// Checker returns a checker for gRPC health checks of the services, and of the empty name that Kubernetes' probes
// send. The checker answers SERVING if the process is ready, and otherwise NOT_SERVING. For a named service, the
// function passed to [Health.Require] must also return true.
func (h *Health) Checker(services ...string) grpchealth.Checker {
	return checker{health: h, services: services}
}

// maxDetailBytes is the maximum size of a problem's description, which health checks return in a header.
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

// DetailHeader is the response header in which health checks describe the problems of the process.
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
