// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/fnctl/internal/client"
	"github.com/krm-function-runner/function-runner/fnctl/internal/fntest"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	functionrunnerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers with the request, so that tests see what arrived.
func echo(_ context.Context, req *evaluator.EvaluateFunctionRequest) (*evaluator.EvaluateFunctionResponse, error) {
	return &evaluator.EvaluateFunctionResponse{
		ResourceList: req.GetResourceList(),
		Log:          []byte(req.GetImage() + " " + req.GetTag()),
	}, nil
}

// connectTo returns a client of an address that is closed with the test.
func connectTo(t *testing.T, address string) *client.Gateway {
	t.Helper()
	g, err := client.New(client.Config{Address: address, MaxMessageBytes: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func TestEvaluate(t *testing.T) {
	address := fntest.Gateway{"echo:v1": echo}.Serve(t)
	for _, address := range []string{address, "http://" + address} {
		got, err := connectTo(t, address).Evaluate(t.Context(), pipeline.Request{
			Image: "echo:v1", Tag: "~1.2", ResourceList: []byte("items: [] # as it is"),
		})
		if err != nil {
			t.Fatal(err)
		}
		if string(got.ResourceList) != "items: [] # as it is" || string(got.Log) != "echo:v1 ~1.2" {
			t.Errorf("Evaluate at %s = %q, %q", address, got.ResourceList, got.Log)
		}
	}
}

// TestEvaluateOverTLS shows that the client speaks https: it rejects the untrusted certificate of
// the test server.
func TestEvaluateOverTLS(t *testing.T) {
	server := fntest.Gateway{"echo:v1": echo}.ServeTLS(t)
	_, err := connectTo(t, server.URL).Evaluate(t.Context(), pipeline.Request{Image: "echo:v1"})
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("Evaluate = %v, want an error about the certificate", err)
	}
}

func TestEvaluateReportsFunctions(t *testing.T) {
	failure := &functionrunnerv1.FunctionFailure{Stderr: "why", ExitCode: 3}
	address := fntest.Gateway{
		"plain:v1":    fntest.Fail(connect.CodeInternal, "it failed"),
		"detailed:v1": fntest.Fail(connect.CodeInternal, "it failed", failure),
	}.Serve(t)
	for image, stderr := range map[string]string{"plain:v1": "", "detailed:v1": "why"} {
		_, err := connectTo(t, address).Evaluate(t.Context(), pipeline.Request{Image: image})
		got, ok := errors.AsType[*pipeline.FunctionError](err)
		if !ok || got.Image != image || got.Message != "it failed" || got.Failure.GetStderr() != stderr {
			t.Errorf("Evaluate of %s = %#v, want a FunctionError with stderr %q", image, err, stderr)
		}
	}
}

func TestEvaluateExplains(t *testing.T) {
	address := fntest.Gateway{
		"full:v1":    fntest.Fail(connect.CodeResourceExhausted, "queue full"),
		"pull:v1":    fntest.Fail(connect.CodeFailedPrecondition, "unauthorized"),
		"tag:v1":     fntest.Fail(connect.CodeInvalidArgument, "no tag matches"),
		"lost:v1":    fntest.Fail(connect.CodeUnavailable, "pod is gone"),
		"strange:v1": fntest.Fail(connect.CodeDataLoss, "oh"),
		"echo:v1":    echo,
	}.Serve(t)
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.Protocols = new(http.Protocols)
	other.Config.Protocols.SetUnencryptedHTTP2(true)
	other.Start()
	t.Cleanup(other.Close)
	for name, tc := range map[string]struct {
		reason, address, image, list string
		want                         []string
	}{
		"not served": {
			"users need to know what to change", address, "other:v1", "",
			[]string{`no evaluator of the gateway serves function "other:v1"`, "map it in the exec evaluator's config"},
		},
		"queue": {"waiting helps", address, "full:v1", "", []string{"queue full", "try again"}},
		"too large": {
			"both limits have to be raised", address, "echo:v1", strings.Repeat("x", 2<<10),
			[]string{": 2048 bytes", "--max-request-body-size"},
		},
		"pull": {
			"the registry's own reason helps", address, "pull:v1", "",
			[]string{`cannot run "pull:v1": unauthorized`},
		},
		"invalid":  {"the gateway says what is wrong", address, "tag:v1", "", []string{"no tag matches"}},
		"lost pod": {"the next pod may be fine", address, "lost:v1", "", []string{"pod is gone", "try again"}},
		"other":    {"nothing is swallowed", address, "strange:v1", "", []string{"data_loss: oh"}},
		"no server": {
			"the most frequent mistake", "127.0.0.1:1", "a", "",
			[]string{"127.0.0.1:1 cannot be reached", "FNCTL_ADDRESS"},
		},
		"web server": {"it does not even speak HTTP/2", web.URL, "a", "", []string{"cannot be reached", "--address"}},
		"other RPCs": {
			"it speaks HTTP/2, but is something else", other.URL, "a", "",
			[]string{"is no function runner", "--address"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := connectTo(t, tc.address).Evaluate(t.Context(),
				pipeline.Request{Image: tc.image, ResourceList: []byte(tc.list)})
			if _, ok := errors.AsType[*client.CallError](err); !ok {
				t.Fatalf("Evaluate = %v, want a CallError", err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Evaluate = %q, want %q in it: %s", err, want, tc.reason)
				}
			}
		})
	}
}

func TestEvaluateEndsWithItsContext(t *testing.T) {
	address := fntest.Gateway{"hang:v1": fntest.Hang}.Serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := connectTo(t, address).Evaluate(ctx, pipeline.Request{Image: "hang:v1"})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("Evaluate = %v, want an interruption", err)
	}
}

// TestDefaultPort has addresses with and without a port and a scheme. The server sees the port in the name of the host.
func TestDefaultPort(t *testing.T) {
	var called string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		called = r.Host
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	dial := func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	for address, want := range map[string]string{
		"localhost": "localhost:9445", "localhost:1": "localhost:1", "http://localhost": "localhost",
	} {
		g, err := client.New(client.Config{Address: address, MaxMessageBytes: 1 << 10, Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Close() })
		_, _ = g.Evaluate(t.Context(), pipeline.Request{Image: "a"})
		if called != want {
			t.Errorf("%s: it calls %q, want %q", address, called, want)
		}
	}
}

func TestNewRejectsAddresses(t *testing.T) {
	for _, address := range []string{"", "ftp://host", "http://", "://x"} {
		if _, err := client.New(client.Config{Address: address}); err == nil {
			t.Errorf("New accepted %q", address)
		}
	}
}
