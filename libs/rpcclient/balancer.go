// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

const (
	// lookupInterval is the age of a service's addresses at which a call starts a new lookup in the background.
	lookupInterval = 5 * time.Second
	lookupTimeout  = 5 * time.Second
	// oldAfter is the age of a service's addresses at which a call waits for a new lookup. At this age, all replicas may
	// have new addresses. lookupWait is the maximum time that the call waits.
	oldAfter   = time.Minute
	lookupWait = 500 * time.Millisecond
	// probeInterval is the interval between health checks of a replica that has not answered a call.
	probeInterval = time.Second
	// probeTimeout is the timeout of a health check. It doubles with each retry of a call.
	probeTimeout = time.Second
)

// balancer distributes a client's calls over the replicas of a service. It avoids replicas that do not answer.
type balancer struct {
	url      *url.URL
	lookup   func(ctx context.Context, host string) ([]string, error)
	dial     func() *http.Transport
	health   *connect.Client[grpc_health_v1.HealthCheckRequest, grpc_health_v1.HealthCheckResponse]
	silences metric.Int64Counter
	log      *slog.Logger

	closed  chan struct{} // closed when the client is closed
	tasks   sync.WaitGroup
	lookups singleflight.Group

	mu        sync.Mutex
	endpoints []*Replica
	known     time.Time // time of the last lookup
	turn      int
}

// inOrder returns the replicas in the order in which a call should try them. Each call begins with the next
// replica, so that all replicas get the same number of calls. Replicas that do not answer are last.
func (b *balancer) inOrder(ctx context.Context) ([]*Replica, error) {
	if err := b.awaitAddresses(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	at := b.turn % len(b.endpoints)
	all := slices.Concat(b.endpoints[at:], b.endpoints[:at])
	slices.SortStableFunc(all, func(x, y *Replica) int {
		return int(telemetry.Bool(x.Silent()) - telemetry.Bool(y.Silent()))
	})
	return all, nil
}

// Hangs reports whether all replicas of the service hang. A replica hangs if it left a call unanswered and has answered
// no health check since then. A replica that only refused a connection does not hang, because it may be restarting. If
// the service's addresses are old, Hangs first waits for a new lookup, as a call does.
func (c *Client) Hangs(ctx context.Context) bool {
	b := c.balancer
	err := b.awaitAddresses(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	return err == nil && !slices.ContainsFunc(b.endpoints, func(r *Replica) bool { return !r.hangs.Load() })
}

// awaitAddresses waits until the addresses of the service's replicas are known. It renews addresses older than
// lookupInterval in the background. If the addresses are older than oldAfter, it waits for the renewal.
func (b *balancer) awaitAddresses(ctx context.Context) error {
	b.mu.Lock()
	known, age := len(b.endpoints) > 0, time.Since(b.known)
	b.mu.Unlock()
	if known && age < lookupInterval {
		return nil
	}
	found := b.lookups.DoChan("", func() (any, error) { //nolint:contextcheck // the lookup is for all callers
		return nil, b.refreshAddresses()
	})
	var old <-chan time.Time
	switch {
	case known && age < oldAfter:
		return nil
	case known:
		timer := time.NewTimer(lookupWait)
		defer timer.Stop()
		old = timer.C
	}
	select {
	case r := <-found:
		if known {
			return nil
		}
		return r.Err
	case <-old:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refreshAddresses looks up the addresses of the service's replicas, and keeps the connections to replicas that still
// exist.
func (b *balancer) refreshAddresses() error {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found, err := b.lookup(ctx, b.url.Hostname())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = time.Now() // delays the next lookup, even after an error
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("look up %s: no addresses", b.url.Hostname())
	}
	if err != nil {
		if len(b.endpoints) > 0 {
			b.log.Warn("addresses not found, using the last known addresses", "service", serviceOf(b.url), "error", err)
		}
		return err
	}
	slices.Sort(found)
	former := b.endpoints
	b.endpoints = nil
	for _, address := range withPort(b.url, found) {
		i := slices.IndexFunc(former, func(e *Replica) bool { return e.address == address })
		if i >= 0 {
			b.endpoints = append(b.endpoints, former[i])
		} else {
			b.endpoints = append(b.endpoints, newReplica(address, b))
		}
	}
	for _, e := range former {
		if !slices.Contains(b.endpoints, e) {
			e.close()
		}
	}
	return nil
}

// withPort adds the port of u, or the default port of its scheme, to each IP address.
func withPort(u *url.URL, addresses []string) []string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	out := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out = append(out, net.JoinHostPort(a, port))
	}
	return out
}

// markSilent records that a replica does not answer. Calls then try this replica last until it answers a health check.
func (b *balancer) markSilent(ctx context.Context, e *Replica, err error) {
	b.mu.Lock()
	// The replica may be gone, so the next call looks up the addresses again.
	b.known = time.Now().Add(-lookupInterval)
	b.mu.Unlock()
	if errors.Is(err, ErrSilent) {
		e.hangs.Store(true)
	}
	if e.silent.Swap(true) {
		return
	}
	service := serviceOf(b.url)
	b.silences.Add(ctx, 1, metric.WithAttributes(attribute.String("service", service)))
	b.log.WarnContext(ctx, "a replica does not answer", "service", service, "address", e.address, "error", err)
	e.renewConnections()
	b.tasks.Go(func() { b.revive(e) }) //nolint:contextcheck // revive continues after the call
}

// revive sends health checks to a replica until it answers or no longer belongs to the service.
func (b *balancer) revive(e *Replica) {
	for b.hasReplica(e) && !b.answersProbe(context.Background(), e, probeTimeout) {
		e.renewConnections()
		select {
		case <-time.After(probeInterval):
		case <-b.closed:
			return
		}
	}
	e.silent.Store(false)
	// We reset silent before hangs. In the opposite order, a concurrent markSilent could set hangs in between. It would
	// not start another revive, because silent is still true, so that hangs would remain true.
	e.hangs.Store(false)
}

// hasReplica reports whether a replica still belongs to the service.
func (b *balancer) hasReplica(e *Replica) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.endpoints, e)
}

// answersProbe reports whether a replica answers a health check within the timeout. An error that the replica returns
// counts as an answer too.
func (b *balancer) answersProbe(ctx context.Context, e *Replica, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(e.withReplica(ctx), timeout)
	defer cancel()
	_, err := b.health.CallUnary(ctx, connect.NewRequest(new(grpc_health_v1.HealthCheckRequest)))
	return err == nil || connect.IsWireError(err)
}

// close stops health checks and closes unused connections.
func (b *balancer) close() {
	close(b.closed)
	b.tasks.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.endpoints {
		e.close()
	}
}

// newSilences returns a metric that counts how often replicas stopped answering.
func newSilences(meters metric.MeterProvider) metric.Int64Counter {
	return telemetry.Must(meters.Meter("rpcclient").Int64Counter("fn.silent.replicas",
		metric.WithDescription("Replicas of another service that were found not to answer. Labels: service.")))
}

// serviceOf returns the name of a Kubernetes Service, which is the first part of the host name in address.
func serviceOf(address *url.URL) string {
	service, _, _ := strings.Cut(address.Hostname(), ".")
	return service
}

// Replica contains a client's connections to a single replica of a service, at one IP address and port.
type Replica struct {
	address   string // host:port
	service   *balancer
	transport atomic.Pointer[http.Transport]
	// silent is true while the replica does not answer. Calls then try other replicas first.
	silent atomic.Bool
	// hangs is true if the replica left a call unanswered and has answered no health check since then.
	hangs atomic.Bool
}

func newReplica(address string, service *balancer) *Replica {
	r := &Replica{address: address, service: service}
	r.transport.Store(service.dial())
	return r
}

// renewConnections makes later calls open new connections. If the address is the cluster IP of a Service, the new
// connections may reach another pod of the Service.
func (r *Replica) renewConnections() {
	former := r.transport.Swap(r.service.dial())
	former.CloseIdleConnections()
	// We close idle connections again later, because the connection of a call that was just canceled is not idle yet.
	time.AfterFunc(probeInterval, former.CloseIdleConnections)
}

// Address returns the replica's address as host:port.
func (r *Replica) Address() string { return r.address }

// Silent reports whether the replica failed to answer a call and has answered no health check since then.
func (r *Replica) Silent() bool { return r.silent.Load() }

func (r *Replica) close() { r.transport.Load().CloseIdleConnections() }

// endpointKey is the context key for the replica that a call must use.
type endpointKey struct{}

// router sends a request to the replica in the request's context. If the context contains no replica, it uses the host
// in the URL.
type router struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (r router) RoundTrip(req *http.Request) (*http.Response, error) {
	e, ok := req.Context().Value(endpointKey{}).(*Replica)
	if !ok {
		return r.Transport.RoundTrip(req)
	}
	routed := req.Clone(req.Context())
	routed.Host = req.URL.Host
	routed.URL.Host = e.address
	return e.transport.Load().RoundTrip(routed)
}

func (r *Replica) withReplica(ctx context.Context) context.Context {
	return context.WithValue(ctx, endpointKey{}, r)
}
