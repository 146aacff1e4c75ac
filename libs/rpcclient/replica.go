// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Replica is a replica of a service, identified by its address.
type Replica struct {
	address   string // host:port
	dial      func() *http.Transport
	transport atomic.Pointer[http.Transport]
	// silent is true if the replica did not answer. Calls then try it after all other replicas.
	silent atomic.Bool
}

func newReplica(address string, dial func() *http.Transport) *Replica {
	e := &Replica{address: address, dial: dial}
	e.transport.Store(dial())
	return e
}

// renewConnections replaces the replica's connections. The address may belong to a Service, so that a new connection
// may reach another replica.
func (e *Replica) renewConnections() {
	former := e.transport.Swap(e.dial())
	former.CloseIdleConnections()
	// The connection of a call that was canceled just before counts as used for a moment, so that we close idle
	// connections again.
	time.AfterFunc(probeInterval, former.CloseIdleConnections)
}

// Address returns the replica's address as host:port.
func (e *Replica) Address() string { return e.address }

// Silent reports whether the replica did not answer the last call or probe.
func (e *Replica) Silent() bool { return e.silent.Load() }

func (e *Replica) close() { e.transport.Load().CloseIdleConnections() }

// endpointKey is the context key of the replica that a call must use.
type endpointKey struct{}

// router sends a request to the replica in the request's context. It sends a request without a replica to the
// request's host.
type router struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (r router) RoundTrip(req *http.Request) (*http.Response, error) {
	e, ok := req.Context().Value(endpointKey{}).(*Replica)
	if !ok {
		return r.Transport.RoundTrip(req)
	}
	routed := req.Clone(req.Context())
	routed.Host = req.URL.Host
	routed.URL.Host = e.address
	return e.transport.Load().RoundTrip(routed)
}

func (e *Replica) withReplica(ctx context.Context) context.Context {
	return context.WithValue(ctx, endpointKey{}, e)
}
