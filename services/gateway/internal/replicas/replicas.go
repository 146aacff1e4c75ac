// SPDX-License-Identifier: Apache-2.0

// Package replicas finds the pod-manager's replicas, and asks the one that owns an
// image: all gateways agree which that is, without talking to each other.
package replicas

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"sync/atomic"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
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
	Lookup    func(ctx context.Context, host string) ([]string, error)
	Telemetry *telemetry.Telemetry
}

// Manager is a lease.Manager made of all replicas.
type Manager struct {
	cfg    Config
	url    *url.URL
	known  atomic.Pointer[known]
	found  chan struct{} // closed once there are replicas: the last ones stay
	lookup chan struct{} // asks for a lookup before its time
	probe  chan struct{} // asks for probes of silent replicas

	silences metric.Int64Counter
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
	// avoid is until when the replica is asked after all others, in Unix nanoseconds.
	avoid atomic.Int64
	// silent reports whether the replica is asked after all others until it has answered.
	silent atomic.Bool
}

// New returns a manager. Its Run has to run while it is used.
func New(cfg Config) (*Manager, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("address of the pod-manager: %w", err)
	}
	if cfg.Lookup == nil {
		cfg.Lookup = rpcclient.LookupHost
	}
	silences, err := rpcclient.Silences(cfg.Telemetry.Meters)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		cfg:      cfg,
		url:      u,
		found:    make(chan struct{}),
		lookup:   make(chan struct{}, 1),
		probe:    make(chan struct{}, 1),
		silences: silences,
	}
	if m.fixed() {
		m.set([]string{u.Hostname()})
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
