// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Limits of a connection. The maximum memory for a client is their product with the number of the client's connections.
const (
	// ReceiveWindow is how much of a request the server buffers before its handler reads it. It is large enough for
	// resource lists of some megabytes, which hardly wait for acknowledgements inside a cluster, and small because each
	// request that waits for memory uses that much.
	ReceiveWindow = 128 << 10
	// ConnReceiveWindow is the same limit for all requests of a connection together.
	ConnReceiveWindow = 2 << 20
	// MaxWindow is the maximum window in net/http, and minConnWindow the minimum window of a connection. net/http replaces
	// other sizes by defaults.
	MaxWindow     = 4<<20 - 1
	minConnWindow = 64 << 10
	// maxHeaderBytes limits the headers of a request: some ids, and a token.
	maxHeaderBytes = 16 << 10
	// maxReadFrameBytes limits HTTP/2 frames, which the server reads as a whole.
	maxReadFrameBytes = 64 << 10
)

// Windows limit how much of its requests a server buffers before their handlers read it. A client that has sent as much
// waits for an acknowledgement, which takes a round trip.
type Windows struct{ Request, Connection int }

// checkSizes returns an error if net/http does not permit w.
func (w Windows) checkSizes() error {
	if w.Request <= 0 || w.Request > MaxWindow || w.Connection < minConnWindow || w.Connection > MaxWindow {
		return fmt.Errorf("windows of %d and %d bytes are not between 1 or %d and %d", w.Request, w.Connection,
			minConnWindow, MaxWindow)
	}
	return nil
}

// DefaultWindows are the windows of an endpoint that sets none.
var DefaultWindows = Windows{Request: ReceiveWindow, Connection: ConnReceiveWindow}

// Defaults of an endpoint.
const (
	// DefaultMaxConnections is far above the needs of a service: each caller uses few connections.
	DefaultMaxConnections = 256
	// DefaultMaxConnectionsPerPeer leaves connections for other addresses. An address may be a proxy with many callers.
	DefaultMaxConnectionsPerPeer = 64
	// DefaultMaxStreams is the maximum number of concurrent requests on an HTTP/2 connection. Clients with more requests
	// wait or use another connection.
	DefaultMaxStreams = 250
)

// limits limits the connections of an endpoint, in total and per address. At a limit, a new connection replaces an idle
// connection, so that clients without requests do not exclude other clients.
type limits struct {
	total, perPeer int

	mu    sync.Mutex
	open  int
	peers map[string][]*conn
}

// newLimits returns the limits of e.
func newLimits(e Endpoint) *limits {
	return &limits{
		total:   cmp.Or(max(e.MaxConnections, 0), DefaultMaxConnections),
		perPeer: cmp.Or(max(e.MaxConnectionsPerPeer, 0), DefaultMaxConnectionsPerPeer),
		peers:   make(map[string][]*conn),
	}
}

// admitConn counts a new connection, and reports whether it may stay. It returns the connection that must be closed for
// it. evicted may be nil.
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

// idlest returns the connection among conns and best that is evicted first. It is nil if all connections have requests.
// Connections without an earlier request are evicted first, then connections of the address with most connections, then
// the connections with the longest idle time.
func (l *limits) idlest(conns []*conn, best *conn) *conn {
	for _, c := range conns {
		if c.requests > 0 {
			continue
		}
		if best == nil || l.compareIdle(c, best) < 0 {
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

// removeConn ends the count of a connection. Further calls do nothing.
func (l *limits) removeConn(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
}

// remove is leave for callers that hold the lock.
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
