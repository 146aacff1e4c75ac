// SPDX-License-Identifier: Apache-2.0

// Package podconn keeps connections to function pods: one for each pod, shared by the evaluations
// on it.
package podconn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Config configures a Pool.
type Config struct {
	// Idle is how long an unused connection is kept.
	Idle time.Duration
	// Max is the number of unused connections that are kept. Connections in use are bounded by the
	// number of pods in use.
	Max int
	// MaxMessageBytes bounds the answers of pods, in bytes.
	MaxMessageBytes int
	// Identity is the certificate that pods are shown, nil for none.
	Identity  *mtls.Identity
	Telemetry *telemetry.Telemetry
}

// Pod is where a pod is, and how it proves who it is.
type Pod struct {
	// UID tells pods apart: a new one may have the name and the address of an earlier one. Address is
	// host:port.
	UID, Address string
	// ID and Secret are the pod's identity, see [mtls.Proof]; empty for one without a certificate.
	ID, Secret string
}

// Pool keeps connections.
type Pool struct {
	cfg     Config
	options []grpc.DialOption

	mu     sync.Mutex
	conns  map[Pod]*Conn
	closed bool
}

// New returns a pool without connections. Its Run must run while the pool is used.
func New(cfg Config) *Pool {
	return &Pool{cfg: cfg, options: dialOptions(cfg), conns: map[Pod]*Conn{}}
}

// Get returns the connection to a pod. The caller
// releases it. It connects on first use.
func (p *Pool) Get(pod Pod) (*Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.conns[pod]
	if !ok {
		var err error
		if c, err = p.newConn(pod); err != nil {
			return nil, fmt.Errorf("make a connection to %s: %w", pod.Address, err)
		}
		p.conns[pod] = c
	}
	c.users++
	return c, nil
}

// release ends one use of c. The connection of a broken pod is not used again, and is closed when
// its last user has released it.
func (p *Pool) release(c *Conn, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.users--
	c.used = time.Now()
	if broken || p.closed {
		p.drop(c)
	}
	if c.users == 0 && c.dropped {
		c.close()
	}
	if unneeded := p.unneeded(); unneeded != nil {
		p.drop(unneeded)
		unneeded.close()
	}
}

// drop removes c from the pool.
func (p *Pool) drop(c *Conn) {
	c.dropped = true
	if p.conns[c.pod] == c {
		delete(p.conns, c.pod)
	}
}

// unneeded returns the connection that was unused for the longest time; nil unless too many are
// unused.
func (p *Pool) unneeded() *Conn {
	if len(p.conns) <= p.cfg.Max {
		return nil
	}
	var longest *Conn
	unused := 0
	for _, c := range p.conns {
		if c.users > 0 {
			continue
		}
		unused++
		if longest == nil || c.used.Before(longest.used) {
			longest = c
		}
	}
	if unused <= p.cfg.Max {
		return nil
	}
	return longest
}

// Run closes connections that were unused for too long, until ctx ends, and all others then.
func (p *Pool) Run(ctx context.Context) error {
	tick := time.NewTicker(max(p.cfg.Idle/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			p.closeUnused(func(c *Conn) bool { return now.Sub(c.used) >= p.cfg.Idle })
		case <-ctx.Done():
			p.mu.Lock()
			p.closed = true
			p.mu.Unlock()
			p.closeUnused(func(*Conn) bool { return true })
			return nil
		}
	}
}

// closeUnused closes the unused connections that which selects.
func (p *Pool) closeUnused(which func(*Conn) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if c.users == 0 && which(c) {
			p.drop(c)
			c.close()
		}
	}
}

// Len returns the number of connections.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}
