// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

const (
	// lookupInterval is how often names are looked up.
	lookupInterval = 5 * time.Second
	// lookupPause is the least time between two lookups.
	lookupPause = 100 * time.Millisecond
	// lookupTimeout bounds one.
	lookupTimeout = 5 * time.Second
)

// Run keeps the list of replicas up to date until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	if m.fixed() {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(lookupInterval)
	defer tick.Stop()
	for {
		m.update(ctx)
		if !retry.Sleep(ctx, lookupPause) {
			return nil
		}
		select {
		case <-m.lookup:
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// lookAgain has the name looked up soon.
func (m *Manager) lookAgain() {
	select {
	case m.lookup <- struct{}{}:
	default: // asked for already
	}
}

// update looks the name up. If that fails, what was known stays.
func (m *Manager) update(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	host := m.url.Hostname()
	addresses, err := m.cfg.Lookup(limited, host)
	if err == nil && len(addresses) == 0 {
		err = errors.New("no addresses")
	}
	switch {
	case err == nil:
		m.found(addresses)
	case ctx.Err() != nil:
	case len(m.known.Load().replicas) > 0:
		m.cfg.Log.WarnContext(ctx, "the pod-manager's addresses could not be looked up: the last ones stay in use",
			"host", host, "error", err)
	default:
		m.cfg.Log.WarnContext(ctx, "the pod-manager's addresses could not be looked up", "host", host, "error", err)
		m.known.Store(&known{err: lease.Elsewhere(fault.New(fault.Unavailable, "look up the pod-manager: %w", err))})
	}
}

// found takes the addresses that there are now.
func (m *Manager) found(addresses []string) {
	slices.Sort(addresses)
	next := &known{}
	before := map[string]*replica{}
	if now := m.known.Load(); now != nil {
		for _, r := range now.replicas {
			before[r.address] = r
		}
		if slices.Equal(addressesOf(now.replicas), m.withPort(addresses)) {
			return
		}
	}
	for _, address := range m.withPort(addresses) {
		r := before[address]
		if r == nil {
			u := url.URL{Scheme: m.url.Scheme, Host: address}
			r = &replica{address: address, Client: lease.NewClient(m.cfg.HTTP, u.String(), m.cfg.Options...)}
		}
		next.replicas = append(next.replicas, r)
	}
	m.known.Store(next)
}

// withPort returns addresses as host:port.
func (m *Manager) withPort(addresses []string) []string {
	port := m.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[m.url.Scheme]
	}
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, net.JoinHostPort(a, port))
	}
	return out
}

func addressesOf(replicas []*replica) []string {
	out := make([]string, 0, len(replicas))
	for _, r := range replicas {
		out = append(out, r.address)
	}
	return out
}

// lookupHost asks DNS. Where replicas have addresses of both kinds, one kind is
// enough: each replica would count twice otherwise.
func lookupHost(ctx context.Context, host string) ([]string, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(ips))
	v4 := slices.ContainsFunc(ips, func(ip netip.Addr) bool { return ip.Unmap().Is4() })
	for _, ip := range ips {
		if ip = ip.Unmap(); ip.Is4() == v4 {
			out = append(out, ip.String())
		}
	}
	return out, nil
}
