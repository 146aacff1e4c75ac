// SPDX-License-Identifier: Apache-2.0

// Package client calls gateways of the function runner over gRPC. It also calls other servers with the service
// evaluator.FunctionEvaluator, such as the function runner of Porch.
package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
)

// Config configures the connection to a gateway.
type Config struct {
	// Address is host:port for a connection without TLS, or a URL with http or https. It is required.
	Address string
	// MaxMessageBytes is the maximum size of a request and of a response. It is required.
	MaxMessageBytes int
	// Dial opens connections to the gateway, for example through kubectl. If it is nil, Address is dialed.
	Dial func(ctx context.Context) (net.Conn, error)
	// Close frees the resources of Dial, such as a kubectl process. It may be nil.
	Close func() error
	// InProcess is true if the gateway runs in this process. Dial is then required, and Address is ignored.
	InProcess bool
	// Unreachable is the advice to users if the gateway cannot be reached. If it is empty, a default advice is used.
	Unreachable string
}

// Gateway is a client of a gateway. It sends resource lists to functions and queries the gateway's status.
type Gateway struct {
	address string
	limit   int
	local   bool // true for a gateway in this process
	// texts contains the error texts for failed evaluations, by gRPC code.
	texts       map[connect.Code]account
	unreachable account
	rpc         evaluatorconnect.FunctionEvaluatorClient
	pools       podmanagerv1connect.PodManagerServiceClient
	status      gatewayv1connect.StatusServiceClient
	http        *http.Transport
	close       func() error // may be nil
}

// New returns a client of a gateway. The client connects at the first call.
func New(config Config) (*Gateway, error) {
	texts := accounts
	if config.InProcess {
		config.Address = "localhost"
		texts = localAccounts()
	}
	base, err := baseURL(config.Address)
	if err != nil {
		return nil, err
	}
	transport := config.transport()
	client := &http.Client{
		Transport: transport,
		// Gateways never redirect. The client therefore follows no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Gateway{
		address:     config.Address,
		limit:       config.MaxMessageBytes,
		local:       config.InProcess,
		texts:       texts,
		unreachable: account{unreachable.problem, cmp.Or(config.Unreachable, unreachable.advice)},
		http:        transport,
		close:       config.Close,
		pools:       podmanagerv1connect.NewPodManagerServiceClient(client, base, connect.WithGRPC()),
		status:      gatewayv1connect.NewStatusServiceClient(client, base, connect.WithGRPC()),
		rpc: evaluatorconnect.NewFunctionEvaluatorClient(client, base,
			connect.WithGRPC(),
			connect.WithReadMaxBytes(config.MaxMessageBytes),
			connect.WithSendMaxBytes(config.MaxMessageBytes)),
	}, nil
}

// transport returns the HTTP/2 transport of connections to the gateway. It verifies certificates with the
// certificate authorities of the operating system.
func (c Config) transport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if c.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx) }
	}
	return transport
}

// Close closes the connections to the gateway.
func (g *Gateway) Close() error {
	g.http.CloseIdleConnections()
	if g.close != nil {
		return g.close()
	}
	return nil
}

// Evaluate implements [pipeline.Evaluator]. Each error is a [pipeline.FunctionError] or a [CallError].
func (g *Gateway) Evaluate(ctx context.Context, req pipeline.Request) (pipeline.Response, error) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx, _ = Traced(ctx) // users find a failed evaluation in the gateway's log by the trace id
	}
	resp, err := g.rpc.EvaluateFunction(withTraceparent(ctx), &evaluator.EvaluateFunctionRequest{
		ResourceList: req.ResourceList, Image: req.Image, Tag: req.Tag,
	})
	if err != nil {
		return pipeline.Response{}, g.explain(ctx, req, err)
	}
	return pipeline.Response{ResourceList: resp.GetResourceList(), Log: resp.GetLog()}, nil
}

const defaultPort = "9445"

// baseURL returns the URL of an address. An address without a scheme means no TLS, as in Porch.
func baseURL(address string) (string, error) {
	scheme, host, found := strings.Cut(address, "://")
	if !found {
		scheme, host = "http", address
	}
	if !found && host != "" && !strings.Contains(host, ":") {
		host = net.JoinHostPort(host, defaultPort)
	}
	if (scheme != "http" && scheme != "https") || host == "" {
		return "", fmt.Errorf("the gateway's address %q must be host:port or a URL of http or https", address)
	}
	return scheme + "://" + host, nil
}
