// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// server is the HTTP server of an endpoint whose port is open.
type server struct {
	name     string
	listener *listener
	http     *http.Server
}

// bindPorts opens the ports of all endpoints. If a port cannot be opened, it closes the ports that it has already
// opened.
func bindPorts(ctx context.Context, log *slog.Logger, components []Component) ([]*server, error) {
	var servers []*server
	for _, component := range components {
		for _, e := range component.Endpoints {
			s, err := newServer(ctx, log, e)
			if err != nil {
				for _, opened := range servers {
					err = errors.Join(err, opened.listener.Close())
				}
				return nil, err
			}
			servers = append(servers, s)
		}
	}
	return servers, nil
}

func newServer(ctx context.Context, log *slog.Logger, e Endpoint) (*server, error) {
	opened := e.Listener
	if opened == nil {
		var lc net.ListenConfig
		var err error
		if opened, err = lc.Listen(ctx, "tcp", e.Address); err != nil {
			return nil, fmt.Errorf("open the port of %s: %w", e.Name, err)
		}
	}
	if e.TLS != nil {
		e.MaxConnectionAge = cmp.Or(e.MaxConnectionAge, maxSecureAge)
	}
	e.MaxStreams = cmp.Or(max(e.MaxStreams, 0), DefaultMaxStreams)
	e.Windows = cmp.Or(e.Windows, DefaultWindows)
	s := &server{name: e.Name, http: newHTTPServer(handler{e.Handler}, e.MaxStreams, e.Windows), listener: &listener{
		Listener: opened, limits: newLimits(e), tls: e.TLS, age: e.MaxConnectionAge, log: log.With("endpoint", e.Name),
	}}
	s.http.ConnContext = withConn
	return s, nil
}

// LogLimiter limits log lines to one per minute and key. The zero LogLimiter is ready to use.
type LogLimiter struct {
	mu     sync.Mutex
	last   map[string]time.Time // time of each key's last log line
	counts map[string]int       // number of each key's events since its last log line
}

// Limit must be called for each event, with a function log that writes the log line. For each key, it calls log at most
// once per minute. The argument count is the number of the key's events since the last log line.
func (l *LogLimiter) Limit(key string, log func(count int)) {
	if count := l.count(key); count > 0 {
		log(count) // without the lock, because a log line may block
	}
}

// count counts an event of the key. It returns the number of events to log, or 0 if no line is to be logged now.
func (l *LogLimiter) count(key string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[string]time.Time)
		l.counts = make(map[string]int)
	}
	l.counts[key]++
	if time.Since(l.last[key]) < time.Minute {
		return 0
	}
	count := l.counts[key]
	l.last[key] = time.Now()
	l.counts[key] = 0
	return count
}

// newHTTPServer returns a server for HTTP/1.1 and for HTTP/2, which gRPC clients use. The server receives decrypted
// requests, because type conn handles TLS.
func newHTTPServer(handler http.Handler, maxStreams int, windows Windows) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: windows.Connection,
			MaxReceiveBufferPerStream:     windows.Request,
			MaxReadFrameSize:              maxReadFrameBytes,
			MaxConcurrentStreams:          maxStreams,
			// The server pings silent clients. If a client's machine has failed, the client's requests then end.
			SendPingTimeout: 30 * time.Second,
			PingTimeout:     15 * time.Second,
		},
	}
}

// serve answers requests until shutdown.
func (s *server) serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.name, err)
	}
	return nil
}
