// SPDX-License-Identifier: Apache-2.0

// Package replicas finds the pod-manager's replicas, and asks the one that owns an
// image: all gateways agree which that is, without talking to each other.
package replicas

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// Config is what a Manager works with.
type Config struct {
	// URL is where the replicas are, as http://host:port or https://host:port. Each
	// address that DNS has for the host is one.
	URL string
	// HTTP has to speak HTTP/2.
	HTTP connect.HTTPClient
	// Options are those of each client.
	Options []connect.ClientOption
	// Lookup returns the addresses of a host; nil asks DNS.
	Lookup func(ctx context.Context, host string) ([]string, error)
	Log    *slog.Logger
}

// Manager is a lease.Manager made of all replicas.
type Manager struct {
	cfg    Config
	url    *url.URL
	known  atomic.Pointer[known]
	lookup chan struct{} // asks for a lookup before its time
}

var _ lease.Manager = (*Manager)(nil)

// known is what is known of the replicas at a time.
type known struct {
	replicas []*replica
	// err is why there are none.
	err error
}

// replica is one pod-manager.
type replica struct {
	address string // host:port
	*lease.Client
	// avoid is until when the replica is asked last, in Unix nanoseconds.
	avoid atomic.Int64
}

// New returns a manager. Its Run has to run while it is used.
func New(cfg Config) (*Manager, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("address of the pod-manager: %w", err)
	}
	if cfg.Lookup == nil {
		cfg.Lookup = lookupHost
	}
	m := &Manager{cfg: cfg, url: u, lookup: make(chan struct{}, 1)}
	if m.fixed() {
		m.found([]string{u.Hostname()})
	} else {
		m.known.Store(&known{
			err: lease.Elsewhere(fault.New(fault.Unavailable,
				"the pod-manager's addresses are being looked up: %s", u.Hostname())),
		})
	}
	return m, nil
}

// fixed reports whether the URL has an address in place of a name.
func (m *Manager) fixed() bool {
	_, err := netip.ParseAddr(m.url.Hostname())
	return err == nil
}

// avoidFor is how long a replica that could not be reached is asked last.
const avoidFor = 3 * time.Second

// failed has a replica asked last that could not be reached: it may be gone for good.
func (m *Manager) failed(ctx context.Context, r *replica, err error) {
	now := time.Now()
	if !r.avoided(now) { // or each waiting lease would be logged
		m.cfg.Log.WarnContext(ctx, "a pod-manager does not answer", "address", r.address, "error", err)
	}
	r.avoid.Store(now.Add(avoidFor).UnixNano())
	m.lookAgain()
}

// avoided reports whether a replica is to be asked last.
func (r *replica) avoided(now time.Time) bool { return r.avoid.Load() > now.UnixNano() }
