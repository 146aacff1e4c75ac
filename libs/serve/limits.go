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
	// ReceiveWindow is the number of bytes of a request that the server buffers before its handler reads them. It is
	// large enough for resource lists of some megabytes, which hardly wait for acknowledgements inside a cluster. It
	// is small, because each request that waits for memory uses as much.
	ReceiveWindow = 128 << 10
	// ConnReceiveWindow is the number of bytes that the server buffers for all requests of a connection.
	ConnReceiveWindow = 2 << 20
	// MaxWindow is the maximum window that net/http permits, and minConnWindow the minimum window of a connection.
	// net/http replaces other sizes by its defaults.
	MaxWindow     = 4<<20 - 1
	minConnWindow = 64 << 10
	// maxHeaderBytes is the maximum size of a request's headers, which contain some ids and a token.
	maxHeaderBytes = 16 << 10
	// maxReadFrameBytes is the maximum size of an HTTP/2 frame, because the server buffers whole frames.
	maxReadFrameBytes = 64 << 10
)

// Windows limits the bytes that a server buffers before handlers read them: of a request, and of all requests of a
// connection. A client that has sent as many bytes waits for an acknowledgement, for at least a round trip.
type Windows struct{ Request, Connection int }

// checkSizes returns an error if net/http does not permit w.
func (w Windows) checkSizes() error {
	if w.Request <= 0 || w.Request > MaxWindow || w.Connection < minConnWindow || w.Connection > MaxWindow {
		return fmt.Errorf("windows of %d and %d bytes are not between 1 or %d and %d", w.Request, w.Connection,
			minConnWindow, MaxWindow)
	}
	return nil
}

// DefaultWindows contains the windows of endpoints whose Windows is not set.
var DefaultWindows = Windows{Request: ReceiveWindow, Connection: ConnReceiveWindow}

// Defaults for the fields of an Endpoint.
const (
	// DefaultMaxConnections is far above the needs of a service, because each caller uses few connections.
	DefaultMaxConnections = 256
	// DefaultMaxConnectionsPerPeer leaves connections for other addresses. It is large because the address may belong
	// to a proxy with many callers.
	DefaultMaxConnectionsPerPeer = 64
	// DefaultMaxStreams is the maximum number of concurrent requests on an HTTP/2 connection. Clients with more requests
	// wait or use another connection.
	DefaultMaxStreams = 250
)

// limits limits the connections of an endpoint, in total and per address. If a limit is reached, a new connection
// replaces an idle connection, so that clients without requests do not exclude other clients.
type limits struct {
	total, perPeer int

	mu    sync.Mutex
	open  int
	peers map[string][]*conn
}

func newLimits(e Endpoint) *limits {
	return &limits{
		total:   cmp.Or(max(e.MaxConnections, 0), DefaultMaxConnections),
		perPeer: cmp.Or(max(e.MaxConnectionsPerPeer, 0), DefaultMaxConnectionsPerPeer),
		peers:   make(map[string][]*conn),
	}
}

// admitConn counts a new connection and returns true if it may stay. If it replaces another connection, admitConn
// returns that connection as evicted, and the caller must close it.
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

// idlest returns the connection among conns and best that should be evicted first, or nil if all of them serve
// requests. Connections that never served a request come first, then connections of the address with the most
// connections, then the connections with the longest idle time.
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

// removeConn removes a connection from the counts. Further calls do nothing.
func (l *limits) removeConn(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(c)
}

// remove implements removeConn. The caller holds mu.
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
