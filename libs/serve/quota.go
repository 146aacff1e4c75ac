// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// strangersShare is the part of an endpoint's connections that strangers may have besides.
	strangersShare = 2
	// strangerLife is how long a connection may be a stranger's.
	strangerLife = 30 * time.Second
)

// limits bound the connections of an endpoint: those of known clients, and those of strangers.
type limits struct {
	mu               sync.Mutex
	known, strangers quota
	// restricted is set if a client is a stranger until it is admitted.
	restricted bool
}

// newLimits returns the limits of e.
func newLimits(e Endpoint) *limits {
	total := cmp.Or(max(e.MaxConnections, 0), DefaultMaxConnections)
	perPeer := cmp.Or(max(e.MaxConnectionsPerPeer, 0), DefaultMaxConnectionsPerPeer)
	return &limits{
		known:      quota{total: total, perPeer: perPeer, peers: make(map[string][]*limitedConn)},
		strangers:  quota{total: max(total/strangersShare, 1), perPeer: perPeer, peers: make(map[string][]*limitedConn)},
		restricted: e.TLS != nil,
	}
}

// enter counts a connection that begins, and reports whether it may stay. If there are too many strangers, the one
// that has to leave is returned.
func (l *limits) enter(c *limitedConn) (stays bool, leaves *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.restricted {
		stays = !l.known.full(c.peer)
		if stays {
			l.known.add(c)
		}
		return stays, nil
	}
	if l.strangers.full(c.peer) {
		leaves = l.strangers.oldest(c.peer)
		l.strangers.remove(leaves)
	}
	l.strangers.add(c)
	return true, leaves
}

// admit counts a stranger's connection as one of a known client. It reports whether it is one, and whether there are
// too many of them.
func (l *limits) admit(c *limitedConn) (stays, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.counted != &l.strangers {
		return c.counted == &l.known, false
	}
	l.strangers.remove(c)
	if l.known.full(c.peer) {
		return false, true
	}
	l.known.add(c)
	return true, false
}

// leave ends the count of a connection.
func (l *limits) leave(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.counted != nil {
		c.counted.remove(c)
	}
}

// expel ends the count of a connection if it is a stranger's, and reports whether it is.
func (l *limits) expel(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	stranger := c.counted == &l.strangers
	if stranger {
		l.strangers.remove(c)
	}
	return stranger
}

// quota is a bounded number of connections.
type quota struct {
	total, perPeer int
	open           int
	peers          map[string][]*limitedConn // by address, the oldest first
}

// full reports whether there may be no further connection of a peer.
func (q *quota) full(peer string) bool { return q.open >= q.total || len(q.peers[peer]) >= q.perPeer }

// add counts a connection.
func (q *quota) add(c *limitedConn) {
	q.open++
	q.peers[c.peer] = append(q.peers[c.peer], c)
	c.counted = q
}

// remove ends the count of a connection.
func (q *quota) remove(c *limitedConn) {
	conns := q.peers[c.peer]
	i := slices.Index(conns, c)
	if conns = slices.Delete(conns, i, i+1); len(conns) == 0 {
		delete(q.peers, c.peer)
	} else {
		q.peers[c.peer] = conns
	}
	q.open--
	c.counted = nil
}

// oldest returns the connection that ends for a new one of a peer: the oldest one of the peer that has most, or of the
// same peer if that has as many as it may. A peer with few connections is heard whatever others do.
func (q *quota) oldest(peer string) *limitedConn {
	most := q.peers[peer]
	if len(most) < q.perPeer {
		for _, conns := range q.peers {
			if len(conns) > len(most) || len(conns) == len(most) && conns[0].began.Before(most[0].began) {
				most = conns
			}
		}
	}
	return most[0]
}

// Admit makes the connection of a request, which is a stranger's until then, one of a known client. It reports whether
// the connection may stay: there may be as many already as the endpoint may have. Then it is closed. Connections of
// endpoints without TLS are never those of strangers.
func Admit(r *http.Request) bool {
	secure := secureOf(r)
	if secure == nil {
		return true
	}
	conn, ok := secure.Conn.(*limitedConn)
	return !ok || conn.admit()
}
