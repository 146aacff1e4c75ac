// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Limits of the data that the server buffers for a connection.
const (
	// ReceiveWindow is the maximum number of bytes of an HTTP/2 request that the server buffers before a handler reads
	// them. With this size, a client in the same cluster rarely waits for acknowledgements when it sends some megabytes.
	// A larger size would cost more memory for each request that waits in a queue.
	ReceiveWindow = 128 << 10
	// ConnReceiveWindow is the maximum number of bytes that the server buffers for all requests of an HTTP/2
	// connection.
	ConnReceiveWindow = 2 << 20
	// MaxWindow is the maximum receive window of a request or a connection. The minimum receive window of a connection is
	// 64 KiB. net/http may silently replace a window outside these limits by its default.
	MaxWindow = 4<<20 - 1
	// maxHeaderBytes is the maximum size of a request's headers, which contain a few ids and a token.
	maxHeaderBytes = 16 << 10
	// maxReadFrameBytes is the maximum size of a received HTTP/2 frame, which the server buffers as a whole.
	maxReadFrameBytes = 64 << 10
)

// Windows contains the HTTP/2 receive windows of a request and of a connection. A window is the maximum number of
// bytes that the server buffers before handlers read them. When a window is full, the client waits for an
// acknowledgement, which takes at least one round trip.
type Windows struct{ Request, Connection int }

// DefaultWindows contains the receive windows for endpoints that do not set Windows.
var DefaultWindows = Windows{Request: ReceiveWindow, Connection: ConnReceiveWindow}

// Defaults for the fields of an Endpoint.
const (
	// DefaultMaxConnections is the default limit for the open connections of a port. A service needs far fewer, because
	// each caller opens few connections.
	DefaultMaxConnections = 256
	// DefaultMaxConnectionsPerPeer is the default limit for the open connections from one address. It is a quarter of
	// the total, so that a single address cannot use up all connections. It is large enough for a proxy that forwards
	// the requests of many callers.
	DefaultMaxConnectionsPerPeer = 64
	// DefaultMaxStreams is the default limit for concurrent requests on an HTTP/2 connection. Clients with more requests
	// wait or open another connection.
	DefaultMaxStreams = 250
	// fullConnections determines the maximum number of running requests of a client address. The maximum is
	// fullConnections times the limit of streams per connection. We limit requests because each request uses memory for
	// its headers and its goroutine, even without a body. The limit for all addresses together is four times as high.
	fullConnections = 8
)

// limits restricts the open connections and the running requests of a port, in total and per client address. When a
// limit is reached, a new connection replaces an idle connection, so that idle clients cannot exclude other clients.
type limits struct {
	total, perPeer  int
	requestsPerPeer int // a quarter of the limit for all addresses together

	mu       sync.Mutex
	open     int
	peers    map[string][]*conn
	running  int            // running requests, including health checks
	requests map[string]int // running requests by address
}

func newLimits(e Endpoint) *limits {
	return &limits{
		total:   cmp.Or(max(e.MaxConnections, 0), DefaultMaxConnections),
		perPeer: cmp.Or(max(e.MaxConnectionsPerPeer, 0), DefaultMaxConnectionsPerPeer),
		peers:   make(map[string][]*conn),

		requestsPerPeer: fullConnections * e.MaxStreams,
		requests:        make(map[string]int),
	}
}

// admitConn counts a new connection, and reports whether it may stay open. If evicted is not nil, callers must close
// this idle connection to make room for the new connection.
func (l *limits) admitConn(c *conn) (stays bool, evicted *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	peerIsFull := len(l.peers[c.peer]) >= l.perPeer
	if peerIsFull || l.open >= l.total {
		if peerIsFull {
			evicted = l.idlest(l.peers[c.peer], nil)
		} else {
			for _, conns := range l.peers {
				evicted = l.idlest(conns, evicted)
			}
		}
		if evicted == nil {
			return false, nil
		}
		l.remove(evicted)
	}
	l.open++
	l.peers[c.peer] = append(l.peers[c.peer], c)
	c.counted = true
	return true, evicted
}

// idlest returns the connection that the server should close first. The candidates are the idle connections in conns
// and the connection best, which may be nil. idlest prefers connections that never served a request. Among equal
// candidates, it prefers the address with the most connections, and then the longest idle time. Without candidates, it
// returns nil.
func (l *limits) idlest(conns []*conn, best *conn) *conn {
	for _, c := range conns {
		if c.requests == 0 && (best == nil || l.compareIdle(c, best) < 0) {
			best = c
		}
	}
	return best
}

func (l *limits) compareIdle(a, b *conn) int {
	if a.used != b.used {
		if b.used {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(len(l.peers[b.peer]), len(l.peers[a.peer])), a.idleSince.Compare(b.idleSince))
}

// beginRequest counts a request as running until endRequest, and reports whether the request may run. There are two
// exceptions for health checks. First, a connection with a running health check counts as idle, so that the server may
// close it to make room for a new connection. This is because clients need no certificate for health checks. Second,
// only the limit per address applies to health checks. The server therefore answers the kubelet's probes even if other
// addresses exhaust the total limit.
func (l *limits) beginRequest(c *conn, isProbe bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests[c.peer] >= l.requestsPerPeer || (!isProbe && l.running >= 4*l.requestsPerPeer) {
		return false
	}
	l.running++
	l.requests[c.peer]++
	if !isProbe {
		c.requests++
		c.used = true
	}
	return true
}

func (l *limits) endRequest(c *conn, isProbe bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	if l.requests[c.peer]--; l.requests[c.peer] == 0 {
		delete(l.requests, c.peer)
	}
	if !isProbe {
		c.requests--
		c.idleSince = time.Now()
	}
}

// removeConn stops counting a closed connection. Only the first call for a connection has an effect.
func (l *limits) removeConn(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
}

// remove stops counting a connection. Callers must hold mu.
func (l *limits) remove(c *conn) {
	if !c.counted {
		return
	}
	c.counted = false
	l.open--
	conns := l.peers[c.peer]
	i := slices.Index(conns, c)
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(l.peers, c.peer)
	} else {
		l.peers[c.peer] = conns
	}
}
