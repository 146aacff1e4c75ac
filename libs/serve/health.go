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

// Health is the health of the process. [Run] sets whether the process is ready.
type Health struct {
	ready atomic.Bool
	// able contains the Able functions of the components.
	able atomic.Pointer[[]func() bool]
	// explain returns problems that an operator must solve before the process can work. It may be nil.
	explain  func() []string
	once     sync.Once
	stopping chan struct{}
}

// Explain adds the strings that details returns to the answers of health checks. They describe problems that an
// operator must solve before the process can work. Callers must call Explain before the process serves requests.
func (h *Health) Explain(details func() []string) { h.explain = details }

// Stopping returns a channel that is closed when running requests should end. Endless streams, such as watches, must
// return then.
func (h *Health) Stopping() <-chan struct{} {
	h.once.Do(func() { h.stopping = make(chan struct{}) })
	return h.stopping
}

// setStopping closes the channel of Stopping. Callers may call it only once.
func (h *Health) setStopping() {
	h.Stopping()
	close(h.stopping)
}

func (h *Health) setReady(ready bool) { h.ready.Store(ready) }

// watchComponents stores the Able functions of the components.
func (h *Health) watchComponents(components []Component) {
	var able []func() bool
	for _, component := range components {
		if component.Able != nil {
			able = append(able, component.Able)
		}
	}
	h.able.Store(&able)
}

// isServing reports whether the process is ready. If service is not empty, all components must also be able to work.
// Liveness probes send an empty name, because a component that cannot work now is no reason to restart all
// components.
func (h *Health) isServing(service string) bool {
	able := h.able.Load()
	unable := func(able func() bool) bool { return !able() }
	return h.ready.Load() && (service == "" || able == nil || !slices.ContainsFunc(*able, unable))
}

// Checker returns a checker for gRPC health checks of the given services, and of the empty name, which probes use. It
// answers SERVING while the process is ready, and otherwise NOT_SERVING. For a named service, it also answers
// NOT_SERVING while a component cannot work.
func (h *Health) Checker(services ...string) grpchealth.Checker {
	return checker{health: h, services: services}
}

// maxDetailBytes is the maximum length of a detail, which is sent in a header.
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
