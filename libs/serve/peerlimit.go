// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"net"
	"sync"
)

// PeerLimit bounds how many there are of something at a time, in total and from each peer. It is safe for
// concurrent use.
type PeerLimit struct {
	total, perPeer int

	mu    sync.Mutex
	count int
	peers map[string]int
}

// NewPeerLimit returns a limit that admits total, of which perPeer from one peer.
func NewPeerLimit(total, perPeer int) *PeerLimit {
	return &PeerLimit{total: total, perPeer: perPeer, peers: make(map[string]int)}
}

// Admit reports whether there may be another one from a peer, and counts it then.
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

// Release ends the count of one that was admitted.
func (l *PeerLimit) Release(peer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	if l.peers[peer]--; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
}

// Peer returns the host of an address as net/http gives it. Clients that share it count as
// one peer.
func Peer(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
