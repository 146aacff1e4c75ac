// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"sync"
)

// PeerLimit limits the number of concurrent uses of a resource, in total and per peer. It is safe for concurrent use.
type PeerLimit struct {
	total, perPeer int

	mu    sync.Mutex
	count int
	peers map[string]int
}

// NewPeerLimit returns a limit of total concurrent uses, and of perPeer concurrent uses by each peer.
func NewPeerLimit(total, perPeer int) *PeerLimit {
	return &PeerLimit{total: total, perPeer: perPeer, peers: make(map[string]int)}
}

// Admit begins a use by a peer. It returns false if a limit is reached.
func (l *PeerLimit) Admit(peer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count >= l.total || l.peers[peer] >= l.perPeer {
		return false
	}
	l.count++
	l.peers[peer]++
	return true
}

// Release ends a use for which Admit returned true.
func (l *PeerLimit) Release(peer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// Peer returns the host of an address in net/http's format. Clients with the same host count as one peer.
func Peer(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
