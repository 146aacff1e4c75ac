// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/retry"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
)

const (
	// lookupInterval is how often names are looked up.
	lookupInterval = 5 * time.Second
	// minLookupInterval is the least time between two lookups.
	minLookupInterval = 100 * time.Millisecond
	// lookupTimeout bounds a lookup.
	lookupTimeout = 5 * time.Second
)

// Run keeps the list of replicas up to date, and probes silent ones, until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	tasks.Go(func() { m.probeSilent(ctx) })
	defer tasks.Wait()
	if m.fixed() {
		return nil
	}
	unknown := retry.Backoff{First: minLookupInterval, Max: lookupInterval} // while no replica is known
	tick := time.NewTicker(lookupInterval)
	defer tick.Stop()
	for {
		wait := minLookupInterval
		if m.update(ctx); len(m.known.Load().replicas) == 0 {
			wait = unknown.Next()
			m.lookAgain()
		}
		if !retry.Sleep(ctx, wait) {
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
func (m *Manager) lookAgain() { wake(m.lookup) }

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
		m.set(addresses)
	case ctx.Err() != nil:
	case len(m.known.Load().replicas) > 0:
		m.cfg.Telemetry.Log.WarnContext(ctx, "the pod-manager's addresses could not be looked up: the last ones stay in use",
			"host", host, "error", err)
	default:
		m.cfg.Telemetry.Log.WarnContext(ctx, "the pod-manager's addresses could not be looked up", "host", host, "error", err)
		m.known.Store(&known{err: lease.Elsewhere(fault.New(fault.Unavailable, "look up the pod-manager: %w", err))})
	}
}

// set takes the addresses that there are now.
func (m *Manager) set(addresses []string) {
	slices.Sort(addresses)
	addresses = rpcclient.WithPort(m.url, addresses)
	next := &known{}
	before := map[string]*replica{}
	if now := m.known.Load(); now != nil {
		for _, r := range now.replicas {
			before[r.address] = r
		}
		if slices.Equal(addressesOf(now.replicas), addresses) {
			return
		}
	}
	for _, address := range addresses {
		r := before[address]
		if r == nil {
			u := url.URL{Scheme: m.url.Scheme, Host: address}
			r = &replica{address: address, Client: lease.NewClient(m.cfg.HTTP, u.String(), m.cfg.Options...)}
		}
		next.replicas = append(next.replicas, r)
	}
	if first := m.known.Swap(next); first == nil || len(first.replicas) == 0 {
		close(m.found)
	}
}

func addressesOf(replicas []*replica) []string {
	out := make([]string, 0, len(replicas))
	for _, r := range replicas {
		out = append(out, r.address)
	}
	return out
}
