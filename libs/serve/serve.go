// SPDX-License-Identifier: Apache-2.0

// Package serve is the one life cycle of all servers of this project.
//
// [Run] binds every port, then serves, then turns ready once every component is: a program that
// cannot bind a port starts nothing. When its context ends it turns not ready, goes on
// serving until load balancers have noticed, rejects new connections, finishes requests in
// flight under a deadline, and stops background tasks last, because requests may need them.
// A rolling update loses no request that way.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Config is the life cycle's settings.
type Config struct {
	// DrainDelay is how long a program accepts requests after SIGTERM: the time in which endpoint removal reaches
	// every client. While new connections arrive, it accepts requests for up to four times as long.
	DrainDelay time.Duration `split_words:"true" default:"5s"`
	// ShutdownTimeout limits the time of requests in flight after that.
	ShutdownTimeout time.Duration `split_words:"true" default:"5m"`
}

// Validate checks the settings.
func (c Config) Validate() error {
	var checks config.Checks
	checks.That(c.DrainDelay >= 0, "DrainDelay", c.DrainDelay, "zero or more")
	checks.That(c.ShutdownTimeout > 0, "ShutdownTimeout", c.ShutdownTimeout, "more than zero")
	return checks.Err()
}

// Endpoint is one port.
type Endpoint struct {
	// Name names the endpoint in logs and errors.
	Name string
	// Address is where to listen, as host:port. It is ignored if there is a
	// Listener.
	Address string
	// Listener, if not nil, is used in place of Address. Run closes it.
	Listener net.Listener
	// Handler answers the requests.
	Handler http.Handler
	// TLS, if not nil, is how clients connect that use TLS. Others connect without, as probes of Kubernetes do: their
	// requests have no TLS state, by which the handler decides whether to answer.
	TLS *tls.Config
	// MaxConnectionAge, if not zero, is how old a connection becomes, give or take a
	// tenth, before its client is asked to use another one. Requests in flight on it
	// finish, streams included. Otherwise clients that keep one connection for ever would
	// not be spread over the replicas of a service.
	MaxConnectionAge time.Duration
	// MaxConnections bounds the connections at a time, and MaxConnectionsPerPeer those from
	// one address; zero is [DefaultMaxConnections] and [DefaultMaxConnectionsPerPeer].
	// A further one takes the place of a connection without a request, and is closed if there is none.
	MaxConnections, MaxConnectionsPerPeer int
	// MaxStreams is the number of requests at a time on one connection of HTTP/2; zero is
	// [DefaultMaxStreams].
	MaxStreams int
	// Windows are the receive windows of HTTP/2; zero is [DefaultWindows].
	Windows Windows
}

// Task runs beside the endpoints until its context ends. An error ends the whole
// program; nil before the context's end means that the task had nothing more to do.
type Task func(ctx context.Context) error

// Component is what one service brings into a process.
type Component struct {
	Endpoints []Endpoint
	Tasks     []Task
	// Ready, if not nil, closes when the component can do its work. The process turns
	// ready after that.
	Ready <-chan struct{}
	// Able, if not nil, reports whether the component can do its work now. While it cannot, health
	// checks that name a service find that it does not serve. They call Able.
	Able func() bool
}

// Run serves components until ctx ends or one of them fails, and returns after
// everything that it started has ended. It returns nil for an orderly end.
func Run(ctx context.Context, cfg Config, log *slog.Logger, health *Health, components ...Component) error {
	servers, err := bind(ctx, log, components)
	if err != nil {
		return err
	}
	// Tasks outlive ctx: requests that are still being finished need them.
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
	health.watch(components)
	turnReady(ctx, failed, health, components)

	select {
	case <-ctx.Done():
		health.setReady(false)
		log.InfoContext(ctx, "stopping", "drain_delay", cfg.DrainDelay, "shutdown_timeout", cfg.ShutdownTimeout)
		took := drain(failed, cfg.DrainDelay, servers) // or less if a component fails meanwhile
		log.InfoContext(ctx, "drained", "seconds", took)
	case <-failed.Done():
		health.setReady(false)
		log.ErrorContext(ctx, "stopping because a component failed")
	}
	health.setStopping()
	err = shutdown(ctx, cfg, servers)
	stopTasks()
	return errors.Join(running.Wait(), err)
}

// turnReady waits until all components can do their work, and turns ready then. The end of
// ctx or a component that fails ends the wait.
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

// shutdown stops all servers at the same time, each under the deadline.
func shutdown(ctx context.Context, cfg Config, servers []*server) error {
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
