// SPDX-License-Identifier: Apache-2.0

// Package podconn manages the gateway's gRPC connections to function pods. All evaluations in a pod share a single
// connection.
package podconn

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/libs/dial"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// Config configures a Pool.
type Config struct {
	// Idle is the time after which an unused connection is closed.
	Idle time.Duration
	// Max is the maximum number of unused connections. Used connections need no limit, because there is only one
	// connection for each pod with evaluations.
	Max int
	// MaxMessageBytes limits the answers of pods, in bytes.
	MaxMessageBytes int
	// Identity is this program's certificate for connections to pods. It is nil if mutual TLS is disabled.
	Identity  *mtls.Identity
	Telemetry *telemetry.Telemetry
	// Dial replaces the machine's network in tests. It is nil in programs.
	Dial dial.Func
}

// Pod contains everything that is needed to connect to a pod and to verify its identity.
type Pod struct {
	// UID distinguishes the pod from an earlier pod with the same address. Address is host:port.
	UID, Address string
	// ID and Secret verify the pod's certificate, see [mtls.Proof]. They are empty for a pod without a certificate.
	ID, Secret string
}

// Pool manages connections.
type Pool struct {
	cfg     Config
	options []grpc.DialOption

	mu     sync.Mutex
	conns  map[Pod]*Conn
	closed bool
}

// New returns a pool without connections. Callers must run the method Run in the background.
func New(cfg Config) *Pool {
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	return &Pool{cfg: cfg, options: dialOptions(cfg), conns: map[Pod]*Conn{}}
}

// Get returns the connection to a pod at once, possibly before it is established. [Conn.Connect] or the first call
// establishes it. Callers must call [Conn.Release] after use.
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

// releaseConn ends a caller's use of a connection. If broken is true, the connection leaves the pool, and the next
// evaluation opens a new connection. The old connection is closed after its last user has released it.
func (p *Pool) releaseConn(c *Conn, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.users--
	c.used = time.Now()
	if broken || p.closed {
		p.removeConn(c)
	}
	if c.users == 0 && c.dropped {
		c.close()
	}
	if unneeded := p.leastRecentlyUsed(); unneeded != nil {
		p.removeConn(unneeded)
		unneeded.close()
	}
}

func (p *Pool) removeConn(c *Conn) {
	c.dropped = true
	if p.conns[c.pod] == c {
		delete(p.conns, c.pod)
	}
}

// leastRecentlyUsed returns the unused connection that was used least recently. It returns nil if at most
// Config.Max connections are unused.
func (p *Pool) leastRecentlyUsed() *Conn {
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

// Run closes connections that have been unused for Config.Idle, until ctx ends. Then it closes all unused connections.
// A used connection is closed when its last user releases it.
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

// closeUnused closes the unused connections for which the function argument returns true.
func (p *Pool) closeUnused(which func(*Conn) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if c.users == 0 && which(c) {
			p.removeConn(c)
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
