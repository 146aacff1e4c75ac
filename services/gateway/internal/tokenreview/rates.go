// SPDX-License-Identifier: Apache-2.0

package tokenreview

import (
	"sync"

	"golang.org/x/time/rate"
)

const (
	// reviewsPerSecond is how many reviews may begin in a second for one peer, and reviewBurst how many at once.
	reviewsPerSecond = 10
	reviewBurst      = 20
	// maxRates bounds the peers of which the rate is known.
	maxRates = 4096
)

// rates bound how often reviews begin for each peer: tokens are free to invent, and reviews are not.
type rates struct {
	mu    sync.Mutex
	peers map[string]*rate.Limiter
}

// allow reports whether a review for a peer may begin, and counts it then.
func (r *rates) allow(peer string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter, ok := r.peers[peer]
	if !ok {
		r.forget()
		limiter = rate.NewLimiter(reviewsPerSecond, reviewBurst)
		r.peers[peer] = limiter
	}
	return limiter.Allow()
}

// forget makes the map small enough for one more peer: idle ones go first.
func (r *rates) forget() {
	if len(r.peers) < maxRates {
		return
	}
	for peer, limiter := range r.peers {
		if limiter.Tokens() >= reviewBurst {
			delete(r.peers, peer)
		}
	}
	for peer := range r.peers {
		if len(r.peers) < maxRates {
			return
		}
		delete(r.peers, peer)
	}
}
