// Package probe asks wrapper servers for their health, so that a pod is used as soon
// as it can be, and not when Kubernetes has found out.
package probe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// Prober asks pods for their health. Use [New]; Run has to run while it is used.
type Prober struct {
	tell func(pool.Event)
	wake chan struct{} // has room for one

	mu      sync.Mutex
	waiting []pool.Probe
	running map[string]context.CancelFunc // by pod
	serial  map[string]int                // tells a pod's probes apart
}

// New returns a prober that tells [pool.Probed].
func New(tell func(pool.Event)) *Prober {
	return &Prober{
		tell: tell, wake: make(chan struct{}, 1),
		running: make(map[string]context.CancelFunc), serial: make(map[string]int),
	}
}

// Probe asks a pod for its health until it serves, its patience ends, or another
// probe of it begins. It does not wait for the answer.
func (p *Prober) Probe(action pool.Probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, action)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Forget ends the probe of a pod that is gone.
func (p *Prober) Forget(pod string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel, ok := p.running[pod]; ok {
		cancel()
	}
}

// Run probes until ctx ends. There is one probe for each pod at most.
func (p *Prober) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running errgroup.Group
	defer func() { _ = running.Wait() }() // they return no errors
	defer cancel()
	for {
		for _, action := range p.take() {
			ctx, done := p.begin(ctx, action.Name)
			running.Go(func() error {
				defer done()
				p.probe(ctx, action)
				return nil
			})
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *Prober) take() []pool.Probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	waiting := p.waiting
	p.waiting = nil
	return waiting
}

// begin ends the former probe of a pod, and returns the context of the next one.
func (p *Prober) begin(ctx context.Context, pod string) (probing context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if former, ok := p.running[pod]; ok {
		former()
	}
	p.running[pod] = cancel
	p.serial[pod]++
	serial := p.serial[pod]
	return ctx, func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.serial[pod] == serial {
			delete(p.running, pod)
			delete(p.serial, pod)
		}
	}
}

// probe asks until the answer is known, and tells it.
func (p *Prober) probe(ctx context.Context, action pool.Probe) {
	asking, cancel := ctx, context.CancelFunc(func() {})
	if action.Patience > 0 {
		asking, cancel = context.WithTimeout(ctx, action.Patience)
	}
	defer cancel()
	err := ask(asking, action.Address)
	if ctx.Err() != nil {
		return // nobody wants to know any more
	}
	unhealthy := ""
	if err != nil {
		unhealthy = err.Error()
	}
	p.tell(pool.Probed{Name: action.Name, UID: action.UID, Unhealthy: unhealthy})
}

const (
	// firstPause and longestPause are the times between two attempts. A wrapper
	// server takes some milliseconds to start once its container does.
	firstPause   = 5 * time.Millisecond
	longestPause = 100 * time.Millisecond
	// attemptTimeout bounds one attempt: before the rules for a Service are in place
	// its address swallows what is sent to it, and TCP would try again after a second.
	attemptTimeout = 250 * time.Millisecond
)

// ask asks the server at address until it serves. It returns the last failure when
// ctx ends.
func ask(ctx context.Context, address string) error {
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longestPause},
			MinConnectTimeout: attemptTimeout,
		}))
	if err != nil {
		return fmt.Errorf("ask %s for its health: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // it has done its work
	client := healthv1.NewHealthClient(conn)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err = attempt(ctx, client)
		if err == nil {
			return nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("ask %s for its health: %w", address, err)
		}
	}
}

// attempt asks once.
func attempt(ctx context.Context, client healthv1.HealthClient) error {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	answer, err := client.Check(ctx, &healthv1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		return errors.New("it says that it is " + answer.GetStatus().String())
	}
	return nil
}
