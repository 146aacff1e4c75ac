package gateway

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1/imageresolverv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/replicas"
)

// Services are the other services that the gateway calls, each a client or the
// service itself in the same process.
type Services struct {
	// ImageResolver knows the tags in registries; nil if there is none. Version
	// constraints are answered from the exec evaluator's images alone then.
	ImageResolver imageresolverv1connect.ImageResolverServiceClient
	// PodManager lends places on function pods; nil if there is none. Functions run
	// as local binaries only then.
	PodManager lease.Manager

	transports []*http.Transport
	tasks      []serve.Task
}

// Close closes the connections to services elsewhere.
func (s Services) Close() {
	for _, t := range s.transports {
		t.CloseIdleConnections()
	}
}

// Connect returns clients of the services that cfg names. The caller closes them.
func Connect(cfg Config, frame program.Frame) (Services, error) {
	var s Services
	tracing, err := frame.Telemetry.Interceptor()
	if err != nil {
		return s, fmt.Errorf("set up tracing of calls to other services: %w", err)
	}
	if cfg.ImageResolver != "" {
		s.ImageResolver = imageresolverv1connect.NewImageResolverServiceClient(
			s.client(cfg.ImageResolver), cfg.ImageResolver, connect.WithGRPC(), connect.WithInterceptors(tracing))
	}
	if cfg.PodManager != "" && cfg.Enabled(RuntimePod) {
		manager, err := replicas.New(replicas.Config{
			URL: cfg.PodManager, HTTP: s.client(cfg.PodManager), Log: frame.Telemetry.Log,
			Options: []connect.ClientOption{connect.WithInterceptors(tracing)},
		})
		if err != nil {
			return s, err
		}
		s.PodManager, s.tasks = manager, append(s.tasks, manager.Run)
	}
	return s, nil
}

// client returns a client for the service at address, by its name or by the
// addresses of its replicas: HTTP/2 with TLS for https and without for http, one
// connection to each for all calls.
func (s *Services) client(address string) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{
		Protocols:       protocols,
		IdleConnTimeout: 5 * time.Minute,
		// A service whose machine has gone is noticed while something waits for it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
	if u, err := url.Parse(address); err == nil {
		transport.TLSClientConfig = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	s.transports = append(s.transports, transport)
	return &http.Client{Transport: transport}
}
