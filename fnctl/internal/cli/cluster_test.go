// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/krm-function-runner/function-runner/fnctl/internal/cli"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
	"github.com/krm-function-runner/function-runner/libs/lease"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
)

// clusterGateway is a gateway that answers callers with an identity only, and a kubectl that leads there.
type clusterGateway struct {
	authority *mtlstest.Authority
	// calls is the file with the arguments of each kubectl.
	calls string
}

// the identities that a clusterGateway answers.
const (
	clusterToken  = "ey.to.ken"
	clusterCaller = "spiffe://function-runner/callers/me"
)

func newClusterGateway(t *testing.T) clusterGateway {
	t.Helper()
	c := clusterGateway{mtlstest.NewAuthority(t, time.Hour), filepath.Join(t.TempDir(), "calls")}
	mux := http.NewServeMux()
	mux.Handle(podmanagerv1connect.NewPodManagerServiceHandler(lease.Handler(podManager(), nil)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		certs := r.TLS.PeerCertificates
		known := len(certs) > 0 && certs[0].URIs[0].String() == clusterCaller
		if !known && r.Header.Get("Authorization") != "Bearer "+clusterToken {
			_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnauthenticated, errors.New("no token")))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	pair, err := tls.X509KeyPair(c.authority.Issue(t, "spiffe://function-runner/gateway", time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.authority.PEM)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: roots,
	}
	server.EnableHTTP2, server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	c.install(t, server.Listener.Addr().String())
	return c
}

// install puts a kubectl in front of PATH. It forwards to an address, and grants what an administrator may have.
func (c clusterGateway) install(t *testing.T, address string) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
echo "$@" >> ` + c.calls + `
case "$*" in
*port-forward*) echo 'Forwarding from ` + address + ` -> 9443'; exec sleep 600;;
*"create token admin "*) echo 'Error from server (Forbidden): no right' >&2; exit 1;;
*"create token"*) echo ` + clusterToken + `;;
*"get secret/gateway-tls"*) printf %s '` + base64.StdEncoding.EncodeToString(c.authority.PEM) + `';;
*"get configmap/authority"*) printf %s '` + string(c.authority.PEM) + `';;
*"get secret/empty"*) ;;
*) echo "Error from server (NotFound): $*" >&2; exit 1;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")) //nolint:forbidigo // of the test
}

// files writes what callers show to the gateway into files.
func (c clusterGateway) files(t *testing.T) (token, certificate, key, authority string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, private := c.authority.Issue(t, clusterCaller, time.Hour)
	return write("token", []byte(clusterToken+"\n")), write("tls.crt", cert), write("tls.key", private),
		write("ca.crt", c.authority.PEM)
}

// TestIdentitiesThroughKubectl calls a gateway in a cluster that answers no caller without an identity.
func TestIdentitiesThroughKubectl(t *testing.T) {
	c := newClusterGateway(t)
	token, certificate, key, authority := c.files(t)
	tests := map[string]struct{ args, want, kubectl string }{
		"a token in a file": {
			"--token-file=" + token + " --ca=" + authority, "warm-v1-0",
			"port-forward --address=127.0.0.1 service/gateway :9443",
		},
		"a token":       {"--token=" + clusterToken + " --ca=" + authority, "warm-v1-0", ""},
		"a certificate": {"--cert=" + certificate + " --key=" + key + " --ca=" + authority, "warm-v1-0", ""},
		"another Service": {
			"--address=https://other:1 --token-file=" + token + " --ca=" + authority, "warm-v1-0", "service/other :1",
		},
		"an account": {
			"--service-account=ci --ca=secret/gateway-tls", "warm-v1-0",
			"--namespace=porch-system create token ci --audience=function-runner --duration=10m0s",
		},
		"an account elsewhere, another authority": {
			"--service-account=team/ci --ca=configmap/authority", "warm-v1-0", "--namespace=team create token",
		},
		"no right": {
			"--service-account=admin --ca=secret/gateway-tls", "kubectl create ended: Error from server (Forbidden)", "",
		},
		"no Secret": {
			"--service-account=ci --ca=secret/other", "read the authorities in secret/other: kubectl get ended: Error from", "",
		},
		"no entry":                 {"--service-account=ci --ca=secret/empty", "it has no ca.crt", ""},
		"the system's authorities": {"--service-account=ci", "such as secret/gateway-tls", ""},
		"no identity":              {"--ca=" + authority, "the gateway does not know who calls", ""},
		"two identities":           {"--service-account=ci --token=t", "takes --service-account or a token, not both", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			env := cli.Environment{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
			cli.Run(t.Context(), env, append([]string{"pods", "--namespace=porch-system"}, strings.Fields(tc.args)...))
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("it prints %q, want %q", out.String(), tc.want)
			}
			calls, _ := os.ReadFile(c.calls) // missing if there were none
			if !strings.Contains(string(calls), tc.kubectl) {
				t.Errorf("kubectl was called with\n%s\nwant %q", calls, tc.kubectl)
			}
			_ = os.Remove(c.calls)
		})
	}
}

// TestFlagsOfClusters has flags that mean nothing without the namespace of a gateway, or beside other addresses.
func TestFlagsOfClusters(t *testing.T) {
	for args, want := range map[string]string{
		"pods --service-account=ci":                             "with --namespace only",
		"pods --context=c":                                      "with --namespace only",
		"pods --ca=secret/gateway-tls":                          "with --namespace only: give a file",
		"eval --local --service-account=ci -i a":                "not both",
		"bench -i a --target=b=host:1 --namespace=porch-system": "takes --target or --namespace",
	} {
		var out strings.Builder
		env := cli.Environment{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
		if code := cli.Run(t.Context(), env, strings.Fields(args)); code != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d and %q, want 2 and %q", args, code, out.String(), want)
		}
	}
}
