// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Replica is a replica of a service. Its IP address and port identify it.
type Replica struct {
	address   string // host:port
	dial      func() *http.Transport
	transport atomic.Pointer[http.Transport]
	// silent is true if the replica does not answer. Calls then try this replica after all other replicas.
	silent atomic.Bool
}

func newReplica(address string, dial func() *http.Transport) *Replica {
	e := &Replica{address: address, dial: dial}
	e.transport.Store(dial())
	return e
}

// renewConnections makes the next calls open new connections. If the address is the cluster IP of a Service, they
// may reach another pod of the Service.
func (e *Replica) renewConnections() {
	former := e.transport.Swap(e.dial())
	former.CloseIdleConnections()
	// We close idle connections again later, because the connection of a call that was just canceled is not idle yet.
	time.AfterFunc(probeInterval, former.CloseIdleConnections)
}

// Address returns the replica's address as host:port.
func (e *Replica) Address() string { return e.address }

// Silent reports whether the replica did not answer a call, and has not answered a probe since then.
func (e *Replica) Silent() bool { return e.silent.Load() }

func (e *Replica) close() { e.transport.Load().CloseIdleConnections() }

// endpointKey is the context key of the replica that a call must use.
type endpointKey struct{}

// router sends a request to the replica in the request's context. If the context contains no replica, it sends the
// request to the host in the URL.
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
