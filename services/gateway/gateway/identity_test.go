// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator/evaluatorconnect"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/program"
	"github.com/krm-function-runner/function-runner/libs/rpcclient"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/gateway/gateway"
)

const (
	porch    = "system:serviceaccount:porch-system:porch-server"
	stranger = "system:serviceaccount:default:default"
)

// kubernetes answers TokenReviews, and counts them.
type kubernetes struct {
	reviews atomic.Int32
	down    atomic.Bool
}

func (k *kubernetes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.reviews.Add(1)
	if k.down.Load() || r.Header.Get("Authorization") != "Bearer own" {
		http.Error(w, "no", http.StatusServiceUnavailable)
		return
	}
	var review map[string]any
	const path = "/apis/authentication.k8s.io/v1/tokenreviews"
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != path {
		http.Error(w, "no TokenReview", http.StatusBadRequest)
		return
	}
	spec, _ := review["spec"].(map[string]any)
	status := map[string]any{"authenticated": true, "audiences": spec["audiences"]}
	switch spec["token"] {
	case "porch":
		status["user"] = map[string]any{"username": porch, "groups": []string{"system:serviceaccounts"}}
	case "stranger":
		status["user"] = map[string]any{"username": stranger}
	case "other audience": // as an API that knows of no audiences answers
		status["user"], status["audiences"] = map[string]any{"username": porch}, nil
	case "long":
		status["user"] = map[string]any{"username": strings.Repeat("a", 4<<10)}
	default:
		status = map[string]any{"authenticated": false, "error": "bad token"}
	}
	review["status"] = status
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
}

// doors are the ports of a gateway that has callers with identities. It serves no image: what it admits
// ends with NotFound.
type doors struct {
	plain, secure string
	api           *kubernetes
	authority     *mtlstest.Authority
}

func startDoors(t *testing.T, change func(*gateway.Config)) doors {
	t.Helper()
	d := doors{api: new(kubernetes), authority: mtlstest.NewAuthority(t, time.Hour)}
	api := httptest.NewTLSServer(d.api)
	t.Cleanup(api.Close)
	account := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, content := range map[string][]byte{"token": []byte("own\n"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(account, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := gateway.Config{
		MaxMessageBytes: conformance.MaxMessageBytes, DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
		TLSAddress: "127.0.0.1:0", Callers: []string{"spiffe://td/callers/*"},
		Token: gateway.TokenConfig{
			Users: []string{"system:serviceaccount:porch-system:*"}, Audiences: []string{"function-runner"},
			API: api.URL, Directory: account,
		},
	}
	change(&cfg)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.secure = listener.Addr().String()
	d.plain = servetest.Start(t, func(frame program.Frame) (serve.Component, error) {
		frame.Identity = d.authority.Identity(t, "spiffe://td/gateway")
		component, err := gateway.New(cfg, gateway.Services{}, frame)
		if err == nil && !cfg.RequireIdentity {
			component.Endpoints[1].Listener = listener
		}
		return component, err
	})
	return d
}

// call evaluates a function with a token, none if empty, and returns the code and the error.
func (d doors) call(t *testing.T, url string, secure *tls.Config, token string) (connect.Code, error) {
	t.Helper()
	client, err := rpcclient.New(url, secure, telemetry.Discard())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	options := slices.Concat(client.Options, []connect.ClientOption{connect.WithInterceptors(connect.UnaryInterceptorFunc(
		func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
				if token != "" {
					req.Header().Set("Authorization", "Bearer "+token)
				}
				return next(ctx, req)
			}
		}))})
	_, err = evaluatorconnect.NewFunctionEvaluatorClient(client.HTTP, url, options...).EvaluateFunction(t.Context(),
		&evaluator.EvaluateFunctionRequest{Image: "example.com/fn:v1", ResourceList: []byte(conformance.List)})
	if err == nil {
		t.Fatal("an evaluation without evaluators succeeded")
	}
	return connect.CodeOf(err), err
}

// own returns the TLS of a client with a certificate.
func (d doors) own(t *testing.T, id string) *tls.Config {
	t.Helper()
	servers, err := mtls.ParsePatterns([]string{"spiffe://td/gateway"})
	if err != nil {
		t.Fatal(err)
	}
	return d.authority.Identity(t, id).Client(servers)
}

// TestWhoMayCallTheGateway has callers of all kinds at both ports.
func TestWhoMayCallTheGateway(t *testing.T) {
	d := startDoors(t, func(*gateway.Config) {})
	bare := &tls.Config{InsecureSkipVerify: true}
	long := strings.Repeat("a", 13<<10)
	const admitted, rejected = connect.CodeNotFound, connect.CodePermissionDenied
	tests := map[string]struct {
		url    string
		secure *tls.Config
		token  string
		want   connect.Code
	}{
		"Porch, without TLS":             {"http://" + d.plain, nil, "", admitted},
		"a certificate":                  {"https://" + d.secure, d.own(t, "spiffe://td/callers/ci"), "", admitted},
		"a certificate, and any token":   {"https://" + d.secure, d.own(t, "spiffe://td/callers/ci"), "invalid", admitted},
		"a function pod's certificate":   {"https://" + d.secure, d.own(t, "spiffe://td/function/x"), "", rejected},
		"it, with a token":               {"https://" + d.secure, d.own(t, "spiffe://td/function/x"), "porch", rejected},
		"a token":                        {"https://" + d.secure, bare, "porch", admitted},
		"a token of another user":        {"https://" + d.secure, bare, "stranger", rejected},
		"a token that is not valid":      {"https://" + d.secure, bare, "invalid", connect.CodeUnauthenticated},
		"a token for something else":     {"https://" + d.secure, bare, "other audience", connect.CodeUnauthenticated},
		"a token with a long name":       {"https://" + d.secure, bare, "long", connect.CodeUnauthenticated},
		"a long token":                   {"https://" + d.secure, bare, long, connect.CodeUnauthenticated},
		"neither":                        {"https://" + d.secure, bare, "", connect.CodeUnauthenticated},
		"a token without TLS":            {"http://" + d.secure, nil, "porch", connect.CodeUnauthenticated},
		"a token at the port without it": {"http://" + d.plain, nil, "invalid", admitted},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := d.call(t, tc.url, tc.secure, tc.token); got != tc.want {
				t.Errorf("got %v, want %v", err, tc.want)
			} else if tc.token != "" && strings.Contains(err.Error(), tc.token+" ") {
				t.Errorf("the error repeats the token: %v", err)
			}
		})
	}
}

// TestTokensAreReviewedOnce has many requests with one token, also while the API is down.
func TestTokensAreReviewedOnce(t *testing.T) {
	d := startDoors(t, func(*gateway.Config) {})
	bare := &tls.Config{InsecureSkipVerify: true}
	for range 5 {
		for token, want := range map[string]connect.Code{"porch": connect.CodeNotFound, "x": connect.CodeUnauthenticated} {
			if got, err := d.call(t, "https://"+d.secure, bare, token); got != want {
				t.Errorf("token %s: %v, want %v", token, err, want)
			}
		}
	}
	if n := d.api.reviews.Load(); n != 2 {
		t.Errorf("%d reviews, want 2", n)
	}
	d.api.down.Store(true)
	if got, err := d.call(t, "https://"+d.secure, bare, "porch"); got != connect.CodeNotFound {
		t.Errorf("while the API is down: %v, want what it said before", err)
	}
	if got, err := d.call(t, "https://"+d.secure, bare, "new"); got != connect.CodeUnavailable {
		t.Errorf("a new token while the API is down: %v, want %v", err, connect.CodeUnavailable)
	}
}

// TestRequireIdentity has a gateway without the port for callers that do not say who they are.
func TestRequireIdentity(t *testing.T) {
	d := startDoors(t, func(c *gateway.Config) { c.RequireIdentity = true })
	if got, err := d.call(t, "http://"+d.plain, nil, ""); got != connect.CodeUnauthenticated {
		t.Errorf("without TLS: %v", err)
	}
	if got, err := d.call(t, "https://"+d.plain, d.own(t, "spiffe://td/callers/ci"), ""); got != connect.CodeNotFound {
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
			func(c *gateway.Config) { c.TLSAddress, c.RequireIdentity = "", true }, "RequireIdentity is true",
		},
		"tokens without a port": {
			func(c *gateway.Config) { c.TLSAddress, c.Token.Users = "", []string{"x"} }, "Token.Users is",
		},
		"callers without a port": {
			func(c *gateway.Config) { c.TLSAddress = "" }, `Callers is "spiffe://td/x"`,
		},
		"no port":     {func(c *gateway.Config) { c.TLSAddress = "9443" }, `TLSAddress is "9443"`},
		"no IDs":      {func(c *gateway.Config) { c.Callers = []string{"gateway"} }, `Callers is "gateway"`},
		"no audience": {func(c *gateway.Config) { c.Token.Users = []string{"x"} }, "Token.Audiences is"},
		"an API without TLS": {
			func(c *gateway.Config) { c.Token.Users, c.Token.API = []string{"x"}, "http://api" }, "Token.API is",
		},
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
	frame := program.Frame{Telemetry: telemetry.Discard(), Health: new(serve.Health)}
	cfg := gateway.Config{
		TLSAddress: ":9443", MaxMessageBytes: 1 << 20, DisableRuntimes: []string{gateway.RuntimeExec, gateway.RuntimePod},
	}
	_, err := gateway.New(cfg, gateway.Services{}, frame)
	if err == nil || !strings.Contains(err.Error(), "FNR_TLS_DIRECTORY") {
		t.Errorf("a port with TLS without a certificate: %v", err)
	}
}
