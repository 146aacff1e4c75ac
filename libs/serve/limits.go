// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Limits of a connection. What a server holds for one client at most is the product of
// these with the client's connections.
const (
	// ReceiveWindow is how much of a request the server buffers before its handler reads
	// it: large enough that a resource list of some megabytes hardly waits for
	// acknowledgements inside a cluster, and small since requests that wait for memory
	// hold that much each.
	ReceiveWindow = 128 << 10
	// ConnReceiveWindow is the same for all requests of a connection.
	ConnReceiveWindow = 2 << 20
	// MaxWindow is the largest window that net/http permits, and minConnWindow the smallest of a connection. It uses
	// defaults in the place of other sizes.
	MaxWindow     = 4<<20 - 1
	minConnWindow = 64 << 10
	// maxHeaderBytes bounds the headers of a request: some ids, and a token.
	maxHeaderBytes = 16 << 10
	// maxReadFrameBytes bounds the frames of HTTP/2, which the server reads whole.
	maxReadFrameBytes = 64 << 10
)

// Windows are how much of its requests a server buffers before their handlers read it. A client that has sent as much
// waits until it gets word, which takes a round trip.
type Windows struct{ Request, Connection int }

// check returns an error if net/http does not permit w.
func (w Windows) check() error {
	if w.Request <= 0 || w.Request > MaxWindow || w.Connection < minConnWindow || w.Connection > MaxWindow {
		return fmt.Errorf("windows of %d and %d bytes are not between 1 or %d and %d", w.Request, w.Connection,
			minConnWindow, MaxWindow)
	}
	return nil
}

// DefaultWindows are those of an endpoint that has none of its own.
var DefaultWindows = Windows{Request: ReceiveWindow, Connection: ConnReceiveWindow}

// Defaults of an endpoint.
const (
	// DefaultMaxConnections is far above what the callers of a service need: each has one
	// connection, or a few.
	DefaultMaxConnections = 256
	// DefaultMaxConnectionsPerPeer leaves connections for others when one address, which
	// may be that of many callers behind a proxy, takes all that it can get.
	DefaultMaxConnectionsPerPeer = 64
	// DefaultMaxStreams is the number of requests at a time on one connection of HTTP/2.
	// Clients wait or make another connection beyond.
	DefaultMaxStreams = 250
)

// limits bounds the connections of an endpoint, in total and per address. At a limit, an idle connection gives way
// to a new one, so that clients without requests exclude no others.
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

// enter counts a new connection, and reports whether it may stay. It returns the connection that has to be closed
// for it; nil for none.
func (l *limits) enter(c *conn) (stays bool, evicted *conn) {
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

// idlest returns the connection among conns and best that is evicted first; nil if all have requests. Connections
// that never had a request come first, then those of the address with most connections, then the ones idle longest.
func (l *limits) idlest(conns []*conn, best *conn) *conn {
	for _, c := range conns {
		if c.requests > 0 {
			continue
		}
		if best == nil || l.compare(c, best) < 0 {
			best = c
		}
	}
	return best
}

func (l *limits) compare(a, b *conn) int {
	if a.used != b.used {
		if b.used {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(len(l.peers[b.peer]), len(l.peers[a.peer])), a.idleSince.Compare(b.idleSince))
}

// leave ends the count of a connection, once.
func (l *limits) leave(c *conn) {
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
