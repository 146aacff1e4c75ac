// SPDX-License-Identifier: Apache-2.0

// Package forward reaches a gateway in a cluster through the API server, with the identity of a kubeconfig: it runs
// kubectl, which has all ways to log in to clusters.
package forward

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Config says which gateway.
type Config struct {
	Cluster
	// Service and Port are those of the gateway.
	Service, Port string
}

// args are the arguments of kubectl, which chooses a port of this machine.
func (c Config) args() []string {
	return c.Cluster.args("port-forward", "--address=127.0.0.1", "service/"+c.Service, ":"+c.Port)
}

// Forwarder connects to a gateway. Nothing is started before the first connection. The caller closes it.
type Forwarder struct {
	config Config
	// turn holds the running kubectl, nil for none. Who takes it out puts one back.
	turn chan *process
}

// New returns a forwarder.
func New(config Config) *Forwarder {
	f := &Forwarder{config: config, turn: make(chan *process, 1)}
	f.turn <- nil
	return f
}

// startTimeout bounds the time until kubectl has a connection to the gateway's pod.
const startTimeout = 30 * time.Second

// Dial connects to the gateway, until ctx ends. kubectl ends with the pod that it has chosen, and is started
// again then.
func (f *Forwarder) Dial(ctx context.Context) (net.Conn, error) {
	address, err := f.address(ctx)
	if err != nil {
		return nil, fmt.Errorf("reach service %s in the cluster: %w", f.config.Service, err)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// address returns where kubectl listens.
func (f *Forwarder) address(ctx context.Context) (string, error) {
	var current *process
	select {
	case current = <-f.turn:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { f.turn <- current }()
	if current != nil && current.runs() {
		return current.address, nil
	}
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	next, err := start(limited, f.config.args())
	if err != nil {
		return "", withAdvice(err)
	}
	current = next
	return current.address, nil
}

// Close ends kubectl. The forwarder must not be used any more.
func (f *Forwarder) Close() {
	if current := <-f.turn; current != nil {
		current.end()
	}
	f.turn <- nil
}
