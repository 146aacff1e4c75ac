// SPDX-License-Identifier: Apache-2.0

// Package serve starts and stops the servers of this project. [Run] first opens all ports, so that a program that
// cannot open a port starts nothing. It then starts background tasks and serves requests. The process becomes ready
// when all its components are ready.
//
// When the context of Run is done, the process is no longer ready. It still serves requests until load balancers have
// noticed this, so that a rolling update loses no requests. It then rejects new connections and finishes running
// requests until a deadline. Finally, it stops the background tasks, which the requests may need.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/grpchealth"
	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Config configures the shutdown of a process.
type Config struct {
	// DrainDelay is the time after SIGTERM during which a program still accepts requests, so that the removal of its
	// endpoint can reach every client. While new connections arrive, the program accepts requests for up to four times as
	// long.
	DrainDelay time.Duration `split_words:"true" default:"5s"`
	// ShutdownTimeout limits the time in which running requests may finish after the program has stopped accepting
	// requests.
	ShutdownTimeout time.Duration `split_words:"true" default:"5m"`
}

// Validate checks the settings.
func (c Config) Validate() error {
	var checks config.Checks
	checks.That(c.DrainDelay >= 0, "DrainDelay", c.DrainDelay, "zero or more")
	checks.That(c.ShutdownTimeout > 0, "ShutdownTimeout", c.ShutdownTimeout, "more than zero")
	return checks.Err()
}

// Endpoint configures a port.
type Endpoint struct {
	// Name is the endpoint's name in logs and errors.
	Name string
	// Address is the address to listen on, as host:port. It is ignored if Listener is set.
	Address string
	// Listener is used instead of Address if it is not nil. Run closes it.
	Listener net.Listener
	// Handler answers the requests.
	Handler http.Handler
	// TLS, if not nil, permits clients to use TLS. Clients may still connect without TLS, as the probes of Kubernetes do.
	// Requests without TLS have a nil r.TLS, and the handler must decide whether to answer them.
	TLS *tls.Config
	// MaxConnectionAge is the age of a connection at which the client must open a new connection, plus or minus a tenth.
	// It makes clients with permanent connections use new replicas of a service. Running requests, including streams, may
	// finish on the old connection. With TLS, the default is an hour. Without TLS, there is no maximum by default.
	MaxConnectionAge time.Duration
	// MaxConnections and MaxConnectionsPerPeer limit the open connections, in total and per client address. The defaults
	// are [DefaultMaxConnections] and [DefaultMaxConnectionsPerPeer]. When a limit is reached, a new connection replaces
	// a connection without a running request. If there is no such connection, the server closes the new connection.
	MaxConnections, MaxConnectionsPerPeer int
	// MaxStreams is the maximum number of concurrent requests on an HTTP/2 connection. The default is [DefaultMaxStreams].
	MaxStreams int
	// Windows contains the receive windows of HTTP/2. The default is [DefaultWindows].
	Windows Windows
}

// Task runs in the background until its context is done. If a Task returns an error, the program stops. A Task that
// has finished its work may return nil earlier.
type Task func(ctx context.Context) error

// Component is a part of a process, such as an RPC service with its ports and background tasks.
type Component struct {
	Endpoints []Endpoint
	Tasks     []Task
	// Ready is closed when the component can work for the first time. The process becomes ready when all components
	// are ready. A nil Ready means that the component is ready immediately.
	Ready <-chan struct{}
}

// Run serves the components until ctx is done or a component fails. It returns after all ports are closed and all
// background tasks have returned. The error is nil if no component failed and Run aborted no request.
func Run(ctx context.Context, cfg Config, log *slog.Logger, health *Health, components ...Component) error {
	servers, err := bindPorts(ctx, log, components)
	if err != nil {
		return err
	}
	// Background tasks continue after ctx is done, because running requests may need them.
	tasksCtx, stopTasks := context.WithCancel(context.WithoutCancel(ctx))
	defer stopTasks()
	running, failed := errgroup.WithContext(tasksCtx)
	for _, component := range components {
		for _, task := range component.Tasks {
			running.Go(func() error { return task(tasksCtx) })
		}
	}
	for _, s := range servers {
		log.InfoContext(ctx, "serving", "endpoint", s.name, "address", s.listener.Addr().String())
		running.Go(s.serve)
	}
	turnReady(ctx, failed, health, components)

	select {
	case <-ctx.Done():
		health.setReady(false)
		log.InfoContext(ctx, "stopping", "drain_delay", cfg.DrainDelay, "shutdown_timeout", cfg.ShutdownTimeout)
		took := drainServers(failed, cfg.DrainDelay, servers) // returns early if a component fails
		log.InfoContext(ctx, "drained", "seconds", took)
	case <-failed.Done():
		health.setReady(false)
		log.ErrorContext(ctx, "stopping because a component failed")
	}
	health.setStopping()
	err = stopServers(ctx, cfg, servers)
	stopTasks()
	return errors.Join(running.Wait(), err)
}

// turnReady waits for all components and then marks the process as ready. It returns early if ctx is done or a
// component fails.
func turnReady(ctx, failed context.Context, health *Health, components []Component) {
	for _, component := range components {
		if component.Ready == nil {
			continue
		}
		select {
		case <-component.Ready:
		case <-ctx.Done():
			return
		case <-failed.Done():
			return
		}
	}
	health.setReady(true)
}

// stopServers shuts down all servers concurrently. It aborts requests that still run after ShutdownTimeout.
func stopServers(ctx context.Context, cfg Config, servers []*server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownTimeout)
	defer cancel()
	var stopping errgroup.Group
	for _, s := range servers {
		stopping.Go(func() error {
			if err := s.http.Shutdown(ctx); err != nil {
				err = errors.Join(err, s.http.Close())
				return fmt.Errorf("stop %s: requests did not end within %v: %w", s.name, cfg.ShutdownTimeout, err)
			}
			return nil
		})
	}
	return stopping.Wait()
}

// LongestDrain is the factor between Config.DrainDelay and the maximum duration of a drain. During a drain, clients
// move to other replicas while the server still answers requests.
const LongestDrain = 4

// drainServers waits until clients use other replicas, and returns the duration of the wait. The wait lasts at least
// the duration delay. It is longer if load balancers still open new connections to this server. If the server stopped
// earlier, clients would lose the requests on these connections.
func drainServers(ctx context.Context, delay time.Duration, servers []*server) time.Duration {
	begin := time.Now()
	for _, s := range servers {
		// From now on, clients must open new connections, which lead to other replicas. We do not call Shutdown of
		// http.Server for this, because it would drop requests that are in transit.
		s.listener.draining.Store(true)
	}
	quiet := delay / 2
	for wait := delay; wait > 0 && retry.Sleep(ctx, wait); {
		wait = 0
		for _, s := range servers {
			wait = max(wait, quiet-time.Since(s.lastLate()))
		}
		wait = min(wait, LongestDrain*delay-time.Since(begin))
	}
	return time.Since(begin)
}

// lastLate returns the time of the last request on a connection that was opened during the shutdown, or the zero
// time if there was no such request.
func (s *server) lastLate() time.Time {
	if last := s.listener.lastLate.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// isProbe reports whether path belongs to a health check. A health check does not prolong a shutdown, because it tests
// this replica and must not move to another replica. It also does not prevent the server from closing its connection to
// admit a new connection.
func isProbe(path string) bool {
	return strings.HasPrefix(path, "/"+grpchealth.HealthV1ServiceName+"/")
}
