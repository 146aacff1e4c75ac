// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/compose"
	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
)

// echoes are the flags of a function-runner with a local binary for example.com/echo:v1 alone.
func echoes(t *testing.T) []string {
	t.Helper()
	functions := t.TempDir()
	testfn.Install(t, functions, "echo")
	config := filepath.Join(functions, "config.yaml")
	content := []byte("functions: [{function: echo, images: ['example.com/echo:v1']}]")
	if err := os.WriteFile(config, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--disable-runtimes=pod", "--config", config, "--functions", functions}
}

// TestCallersProveWhoTheyAreToFunctionRunner has the port for callers with identities, and no other, in one process.
func TestCallersProveWhoTheyAreToFunctionRunner(t *testing.T) {
	t.Setenv("FNR_TLS_ADDRESS", "127.0.0.1:0")
	t.Setenv("FNR_ADDRESS", "off")
	t.Setenv("FNR_CALLERS", "spiffe://td/porch")
	s, err := settings.Load(echoes(t), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	authority := mtlstest.NewAuthority(t, time.Hour)
	address := servetest.Start(t, func(frame servermain.Frame) (serve.Component, error) {
		frame.Identity = authority.Identity(t, "spiffe://td/runner")
		components, err := compose.Components(t.Context(), s, frame)
		return join(components), err
	})
	own := func(id string) credentials.TransportCredentials {
		return credentials.NewTLS(authority.Identity(t, id).ClientOfSibling("runner"))
	}
	for name, tc := range map[string]struct {
		credentials credentials.TransportCredentials
		want        codes.Code
	}{
		"a caller":        {own("spiffe://td/porch"), codes.OK},
		"another program": {own("spiffe://td/other"), codes.PermissionDenied},
		"no identity":     {insecure.NewCredentials(), codes.Unauthenticated},
	} {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(tc.credentials))
		if err != nil {
			t.Fatal(err)
		}
		_, err = evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(), &evaluator.EvaluateFunctionRequest{
			Image: "example.com/echo:v1", ResourceList: []byte("kind: ResourceList\nitems: []\n"),
		})
		if status.Code(err) != tc.want {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		_ = conn.Close()
	}
}

// TestCallersWithoutTheirPort names callers for a function-runner that cannot tell them apart.
func TestCallersWithoutTheirPort(t *testing.T) {
	for variable, tc := range map[string]struct{ value, want string }{
		"FNR_CALLERS": {"true", `FNR_CALLERS is "true": it must be left out without a port with TLS`},
		"FNR_ADDRESS": {"off", `--port is "off": it must be host:port without a port with TLS`},
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, tc.value)
			_, err := settings.Load(echoes(t), t.Output())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
