package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// server is an endpoint with its port.
type server struct {
	name     string
	listener net.Listener
	http     *http.Server
	aging    *agingListener // nil if connections do not age
}

// bind opens the ports of all endpoints, or none.
func bind(ctx context.Context, parts []Part) ([]*server, error) {
	var servers []*server
	for _, part := range parts {
		for _, e := range part.Endpoints {
			s, err := newServer(ctx, e)
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

func newServer(ctx context.Context, e Endpoint) (*server, error) {
	listener := e.Listener
	if listener == nil {
		var lc net.ListenConfig
		var err error
		if listener, err = lc.Listen(ctx, "tcp", e.Address); err != nil {
			return nil, fmt.Errorf("open the port of %s: %w", e.Name, err)
		}
	}
	s := &server{name: e.Name, listener: listener, http: newHTTPServer(e.Handler)}
	if e.MaxConnectionAge > 0 {
		s.aging = &agingListener{Listener: listener, age: e.MaxConnectionAge}
		s.listener, s.http.ConnContext, s.http.Handler = s.aging, withConn, s.aging.handler(e.Handler)
	}
	return s, nil
}

// newHTTPServer returns a server for HTTP/1.1 and for HTTP/2 without TLS, which is
// what gRPC clients inside a cluster speak.
func newHTTPServer(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           handler,
		Protocols:         protocols,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       5 * time.Minute,
		HTTP2: &http.HTTP2Config{
			// Windows of a whole message: a resource list of some megabytes must
			// not wait for the client's acknowledgements.
			MaxReceiveBufferPerConnection: 16 << 20,
			MaxReceiveBufferPerStream:     8 << 20,
			MaxReadFrameSize:              256 << 10,
			MaxConcurrentStreams:          1000,
			// A client whose machine has gone is noticed, so that its evaluations
			// end.
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
