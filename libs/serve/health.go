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

// Health is whether the process takes requests. [Run] turns it ready and not
// ready again.
type Health struct {
	ready atomic.Bool
	// able are the parts' own conditions.
	able atomic.Pointer[[]func() bool]
	// explain returns what will keep the process from its work unless it is changed.
	explain  func() []string
	once     sync.Once
	stopping chan struct{}
}

// Explain has answers to health checks carry details: what will keep the process from its work unless
// it is changed. It is called before the process serves.
func (h *Health) Explain(details func() []string) { h.explain = details }

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

// watch takes the components' conditions.
func (h *Health) watch(components []Component) {
	var able []func() bool
	for _, component := range components {
		if component.Able != nil {
			able = append(able, component.Able)
		}
	}
	h.able.Store(&able)
}

// serving reports whether the process takes requests now, those of a service that it names if
// there is a name. Probes for the life of the process have no name: a component that cannot do its
// work now is no reason to restart all.
func (h *Health) serving(service string) bool {
	able := h.able.Load()
	unable := func(able func() bool) bool { return !able() }
	return h.ready.Load() && (service == "" || able == nil || !slices.ContainsFunc(*able, unable))
}

// Checker answers gRPC health checks of the named services, and of the empty name,
// which probes use: SERVING while the process is ready, NOT_SERVING before and
// after. A named service is NOT_SERVING also while a component is not able to do its work.
func (h *Health) Checker(services ...string) grpchealth.Checker {
	return checker{health: h, services: services}
}

// maxDetailBytes bounds a detail, which is a header.
const maxDetailBytes = 1 << 10

// printable replaces what gRPC does not permit in headers.
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

type checker struct {
	health   *Health
	services []string
}

// DetailHeader is the header of answers to health checks with details.
const DetailHeader = "Fn-Health-Detail"

func (c checker) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if req.Service != "" && !slices.Contains(c.services, req.Service) {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("unknown service %q", req.Service))
	}
	if info, ok := connect.CallInfoForHandlerContext(ctx); ok && c.health.explain != nil {
		for _, detail := range c.health.explain() {
			detail, _ = excerpt.Start(strings.Map(printable, detail), maxDetailBytes)
			info.ResponseHeader().Add(DetailHeader, detail)
		}
	}
	if !c.health.serving(req.Service) {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
