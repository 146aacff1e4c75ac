// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	server = "spiffe://td/server"
	caller = "spiffe://td/caller"
)

func patterns(t testing.TB, list ...string) mtls.Patterns {
	t.Helper()
	p, err := mtls.ParsePatterns(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// echo answers with the list.
type echo struct{}

func (echo) EvaluateFunction(_ context.Context, req *evaluator.EvaluateFunctionRequest) (
	*evaluator.EvaluateFunctionResponse, error,
) {
	return &evaluator.EvaluateFunctionResponse{ResourceList: req.GetResourceList()}, nil
}

// start serves echo to caller, and returns its address as host:port.
func start(t testing.TB, identity *mtls.Identity) string {
	t.Helper()
	return servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		frame.Health.Explain(identity.Details)
		access, err := rpcserve.Callers(identity, []string{caller})
		if err != nil {
			return serve.Component{}, err
		}
		cfg := rpcserve.Config{Telemetry: frame.Telemetry, Health: frame.Health, Access: access}
		handler := rpcserve.NewHandler(cfg, rpcserve.Service{
			Name: evaluatorconnect.FunctionEvaluatorName, MaxRequestBytes: 1 << 20, MaxResponseBytes: 1 << 20,
			Handler: func(options ...connect.HandlerOption) (string, http.Handler) {
				return evaluatorconnect.NewFunctionEvaluatorHandler(echo{}, options...)
			},
		})
		return serve.Component{Endpoints: []serve.Endpoint{{Name: "echo", Handler: handler, TLS: identity.Server()}}}, nil
	})
}

// client is a client of echo.
type client struct {
	evaluatorconnect.FunctionEvaluatorClient
	health *connect.Client[grpc_health_v1.HealthCheckRequest, grpc_health_v1.HealthCheckResponse]
}

// dial returns a client of the service at url.
func dial(t testing.TB, url string, secure *tls.Config) client {
	t.Helper()
	c, err := rpcclient.New(url, secure, telemetry.Discard())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return client{
		evaluatorconnect.NewFunctionEvaluatorClient(c.HTTP, url, c.Options...),
		connect.NewClient[grpc_health_v1.HealthCheckRequest, grpc_health_v1.HealthCheckResponse](
			c.HTTP, url+grpc_health_v1.Health_Check_FullMethodName, c.Options...),
	}
}

func (c client) call(ctx context.Context) error {
	_, err := c.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{ResourceList: []byte("x")})
	return err
}

// TestWhoGetsWhat has clients of all kinds call a port. The network is open to all of them.
func TestWhoGetsWhat(t *testing.T) {
	authority, foreign := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	address := start(t, authority.Identity(t, server))
	own := func(id string) *tls.Config { return authority.Identity(t, id).ClientOfSibling("server") }
	blind := &tls.Config{InsecureSkipVerify: true}
	stolen := foreign.Identity(t, caller).ClientOfSibling("server")
	stolen.VerifyConnection = nil // it takes any server
	alien := own("spiffe://other/caller")
	alien.VerifyConnection = nil // likewise: the server is of another trust domain
	misled := authority.Identity(t, caller).ClientOfSibling("caller")
	const none = connect.Code(0)
	tests := map[string]struct {
		url              string
		secure           *tls.Config
		evaluate, health connect.Code
	}{
		"the caller":                          {"https://", own(caller), none, none},
		"another program":                     {"https://", own("spiffe://td/fn"), connect.CodePermissionDenied, none},
		"below the caller":                    {"https://", own(caller + "/x"), connect.CodePermissionDenied, none},
		"another trust domain":                {"https://", alien, connect.CodePermissionDenied, none},
		"TLS without a certificate":           {"https://", blind, connect.CodeUnauthenticated, none},
		"no TLS":                              {"http://", nil, connect.CodeUnauthenticated, none},
		"the caller's ID of another issuer":   {"https://", stolen, connect.CodeUnavailable, connect.CodeUnavailable},
		"a client that expects other servers": {"https://", misled, connect.CodeUnavailable, connect.CodeUnavailable},
		"a client that trusts the system":     {"https://", nil, connect.CodeUnavailable, connect.CodeUnavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := dial(t, tc.url+address, tc.secure)
			if err := c.call(t.Context()); code(err) != tc.evaluate {
				t.Errorf("evaluation: %v, want %v", err, tc.evaluate)
			}
			_, err := c.health.CallUnary(t.Context(), connect.NewRequest(new(grpc_health_v1.HealthCheckRequest)))
			if code(err) != tc.health {
				t.Errorf("health check: %v, want %v", err, tc.health)
			}
		})
	}
}

// code is the code of an error, 0 for none.
func code(err error) connect.Code {
	if err == nil {
		return 0
	}
	return connect.CodeOf(err)
}

// TestOldVersionsOfTLS has a client that knows TLS 1.2 only.
func TestOldVersionsOfTLS(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	address := start(t, authority.Identity(t, server))
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
	if err == nil {
		_ = conn.Close()
		t.Error("TLS 1.2 is accepted")
	}
}
