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
	config Config
	// turn is a lock in the form of a channel of capacity 1. The channel contains the running kubectl process, or nil if
	// none was started. A goroutine that receives this value must send a process or nil back. This prevents two goroutines
	// from starting kubectl concurrently.
	turn chan *process
}

// New returns a forwarder.
func New(config Config) *Forwarder {
	f := &Forwarder{config: config, turn: make(chan *process, 1)}
	f.turn <- nil
	return f
}

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
	var current *process
	select {
	case current = <-f.turn:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { f.turn <- current }()
	if current != nil && current.isRunning() {
		return current.address, nil
	}
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	next, err := start(limited, f.config.args())
	if err != nil {
		return "", err
	}
	current = next
	return current.address, nil
}

// Close stops kubectl. Callers must not use the forwarder afterwards.
func (f *Forwarder) Close() error {
	if current := <-f.turn; current != nil {
		current.end()
	}
	f.turn <- nil
	return nil
}
