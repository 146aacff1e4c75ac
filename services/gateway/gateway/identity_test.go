// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

// gatewayPorts are the ports of a gateway that has callers with identities. It serves no image: what it admits
// ends with NotFound.
type gatewayPorts struct {
	plain, secure string
	authority     *mtlstest.Authority
}

func startGatewayPorts(t *testing.T, change func(*gateway.Config)) gatewayPorts {
	t.Helper()
	d := gatewayPorts{authority: mtlstest.NewAuthority(t, time.Hour)}
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
		TLSAddress: "127.0.0.1:0", Callers: []string{"spiffe://td/callers/*"},
	}
	change(&cfg)
	listener := servetest.Listen(t)
	d.secure = listener.Addr().String()
	d.plain = servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		frame.Identity = d.authority.Identity(t, "spiffe://td/gateway")
		component, err := gateway.New(cfg, gateway.Services{}, frame)
		if err == nil && cfg.Address != "off" {
			component.Endpoints[1].Listener = listener
		}
		return component, err
	})
	return d
}

// call evaluates a function, and returns the code and the error.
func call(t *testing.T, url string, secure *tls.Config) (connect.Code, error) {
	t.Helper()
	client, err := rpcclient.New(url, secure, telemetry.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = evaluatorconnect.NewFunctionEvaluatorClient(client.HTTP, url, client.Options...).EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: "example.com/fn:v1", ResourceList: []byte(conformance.List)})
	if err == nil {
		t.Fatal("an evaluation without evaluators succeeded")
	}
	return connect.CodeOf(err), err
}

// own returns the TLS of a client with a certificate.
func (d gatewayPorts) own(t *testing.T, id string) *tls.Config {
	t.Helper()
	return d.authority.Identity(t, id).ClientOfSibling("gateway")
}

// TestWhoMayCallTheGateway has callers of all kinds at both ports.
func TestWhoMayCallTheGateway(t *testing.T) {
	d := startGatewayPorts(t, func(*gateway.Config) {})
	bare := &tls.Config{InsecureSkipVerify: true}
	const admitted, rejected = connect.CodeNotFound, connect.CodePermissionDenied
	tests := map[string]struct {
		url    string
		secure *tls.Config
		want   connect.Code
	}{
		"Porch, without TLS":           {"http://" + d.plain, nil, admitted},
		"a certificate":                {"https://" + d.secure, d.own(t, "spiffe://td/callers/ci"), admitted},
		"a function pod's certificate": {"https://" + d.secure, d.own(t, "spiffe://td/function/x"), rejected},
		"no certificate":               {"https://" + d.secure, bare, connect.CodeUnauthenticated},
		"no TLS":                       {"http://" + d.secure, nil, connect.CodeUnauthenticated},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := call(t, tc.url, tc.secure); got != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestRequireIdentity has a gateway without the port for callers that do not say who they are.
func TestRequireIdentity(t *testing.T) {
	d := startGatewayPorts(t, func(c *gateway.Config) { c.Address = "off" })
	if got, err := call(t, "http://"+d.plain, nil); got != connect.CodeUnauthenticated {
		t.Errorf("without TLS: %v", err)
	}
	if got, err := call(t, "https://"+d.plain, d.own(t, "spiffe://td/callers/ci")); got != connect.CodeNotFound {
		t.Errorf("with a certificate: %v", err)
	}
}

// TestSettingsOfIdentities has settings without effect, or that admit no caller.
func TestSettingsOfIdentities(t *testing.T) {
	valid := gateway.Config{TLSAddress: ":9443", Callers: []string{"spiffe://td/x"}}
	tests := map[string]struct {
		change func(*gateway.Config)
		want   string
	}{
		"required without a port": {
			func(c *gateway.Config) {
				c.TLSAddress = ""
				c.Address = "off"
			}, `Address is "off"`,
		},
		"callers without a port": {
			func(c *gateway.Config) { c.TLSAddress = "" }, `Callers is "spiffe://td/x"`,
		},
		"no port": {func(c *gateway.Config) { c.TLSAddress = "9443" }, `TLSAddress is "9443"`},
		"no IDs":  {func(c *gateway.Config) { c.Callers = []string{"gateway"} }, `Callers is "gateway"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := valid
			tc.change(&cfg)
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	frame := servermain.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	cfg := gateway.Config{
		TLSAddress: ":9443", MaxMessageBytes: 1 << 20, DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
	}
	_, err := gateway.New(cfg, gateway.Services{}, frame)
	if err == nil || !strings.Contains(err.Error(), "FNR_TLS_DIRECTORY") {
		t.Errorf("a port with TLS without a certificate: %v", err)
	}
}
