// SPDX-License-Identifier: Apache-2.0

// Package forward connects to a gateway inside a cluster, through the cluster's API server. It runs kubectl
// port-forward, because kubectl supports all ways to log in to clusters, and client-go would make fnctl
// two thirds larger.
package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"time"
)

// Cluster contains kubectl's flags that select a namespace of a cluster. Empty values mean kubectl's defaults.
type Cluster struct{ Namespace, Context, Kubeconfig string }

// Config identifies a gateway inside a cluster. All fields except Cluster are required.
type Config struct {
	Cluster
	// Service and Port are the name and the port of the gateway's Service.
	Service, Port string
}

// args returns the arguments of kubectl port-forward. Without a local port, kubectl chooses a free port.
func (c Config) args() []string {
	var args []string
	for flag, value := range map[string]string{
		"context": c.Context, "kubeconfig": c.Kubeconfig, "namespace": c.Namespace,
	} {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	return append(args, "port-forward", "--address=127.0.0.1", "service/"+c.Service, ":"+c.Port)
}

// Forwarder connects to a gateway inside a cluster through kubectl port-forward. It starts kubectl at the first
// connection. Callers must close the forwarder.
type Forwarder struct {
	config  Config
	mu      sync.Mutex // held while kubectl starts, so that it is started only once
	current *process   // latest kubectl process, or nil before the first connection
}

// New returns a forwarder.
func New(config Config) *Forwarder { return &Forwarder{config: config} }

// startTimeout is the timeout for the start of kubectl and its connection to the gateway's pod.
const startTimeout = 30 * time.Second

// Dial opens a connection to the gateway through kubectl. It restarts kubectl if kubectl has exited, for example
// because the gateway's pod was deleted. Dial fails if ctx expires first.
func (f *Forwarder) Dial(ctx context.Context) (net.Conn, error) {
	address, err := f.address(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%w: install kubectl, or leave --namespace out and give the gateway's address with --address", err)
	}
	if err != nil {
		return nil, fmt.Errorf("reach service %s in the cluster: %w", f.config.Service, err)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// address returns the local address where kubectl listens. It starts kubectl unless kubectl already runs.
func (f *Forwarder) address(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil && f.current.isRunning() {
		return f.current.address, nil
	}
	if ctx.Err() != nil { // ended while another connection started kubectl
		return "", context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	next, err := start(ctx, f.config.args())
	if err != nil {
		return "", err
	}
	f.current = next
	return next.address, nil
}

// Close stops kubectl. Callers must not use the forwarder afterwards.
func (f *Forwarder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil {
		f.current.end()
	}
	return nil
}
