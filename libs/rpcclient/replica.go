// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Replica is an address of a service.
type Replica struct {
	address   string // host:port
	dial      func() *http.Transport
	transport atomic.Pointer[http.Transport]
	// silent is true if the address is called after all other addresses until it answers.
	silent atomic.Bool
}

func newReplica(address string, dial func() *http.Transport) *Replica {
	e := &Replica{address: address, dial: dial}
	e.transport.Store(dial())
	return e
}

// renewConnections replaces the replica's connections: a new connection to the address of a Service may reach another
// replica.
func (e *Replica) renewConnections() {
	former := e.transport.Swap(e.dial())
	former.CloseIdleConnections()
	// The connection of a call that was canceled just now still counts as used for a moment.
	time.AfterFunc(probeInterval, former.CloseIdleConnections)
}

// Address returns the replica's address as host:port.
func (e *Replica) Address() string { return e.address }

// Silent reports whether the replica did not answer the last call or probe.
func (e *Replica) Silent() bool { return e.silent.Load() }

func (e *Replica) close() { e.transport.Load().CloseIdleConnections() }

// endpointKey is the context key of a call's replica.
type endpointKey struct{}

// router sends requests to the replica in their context. Requests without a replica are sent to their host.
type router struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (r router) RoundTrip(req *http.Request) (*http.Response, error) {
	e, ok := req.Context().Value(endpointKey{}).(*Replica)
	if !ok {
		return r.Transport.RoundTrip(req)
	}
	routed := req.Clone(req.Context())
	routed.Host, routed.URL.Host = req.URL.Host, e.address
	return e.transport.Load().RoundTrip(routed)
}

// withReplica returns a context for calls to the replica.
func (e *Replica) withReplica(ctx context.Context) context.Context {
	return context.WithValue(ctx, endpointKey{}, e)
}
