// SPDX-License-Identifier: Apache-2.0

package wrapper_test

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/libs/testing/conformance"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/applet"
	"github.com/krm-function-runner/function-runner/wrapper-server/internal/wrapper"
)

const (
	podID    = "spiffe://function-runner/function-pod/porch-fn-system/echo-1"
	gateway  = "spiffe://function-runner/gateway"
	resolver = "spiffe://function-runner/image-resolver"
	secret   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// secured are the arguments of a pod that accepts gateways that the authority knows, and its environment.
func secured(authority *mtlstest.Authority) (args, environ []string) {
	return []string{
		"--tls-id=" + podID, "--tls-authorities=" + string(authority.PEM), "--tls-callers=" + gateway,
		"--environment=FNR_TLS_SECRET",
	}, []string{"FNR_TLS_SECRET=" + secret}
}

// transport is how a program with an ID connects to a pod.
func transport(t *testing.T, authority *mtlstest.Authority, id, pod string) credentials.TransportCredentials {
	t.Helper()
	config, err := authority.Identity(t, id).ClientOfProven(pod, secret)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.NewTLS(config)
}

// TestCallers has callers of all kinds evaluate in a pod. The network is open to all of them.
func TestCallers(t *testing.T) {
	authority, stranger := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	args, environ := secured(authority)
	address := start(t, "echo", environ, args...)
	for name, test := range map[string]struct {
		transport credentials.TransportCredentials
		want      codes.Code
	}{
		"a gateway":                  {transport(t, authority, gateway, podID), codes.OK},
		"another program":            {transport(t, authority, resolver, podID), codes.PermissionDenied},
		"a function pod":             {transport(t, authority, podID, podID), codes.PermissionDenied},
		"a gateway of a stranger":    {transport(t, stranger, gateway, podID), codes.Unavailable},
		"a gateway for another pod":  {transport(t, authority, gateway, podID+"0"), codes.Unavailable},
		"TLS without a certificate":  {credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), codes.Unauthenticated},
		"a caller that does not use": {insecure.NewCredentials(), codes.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(test.transport))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, err = evaluator.NewFunctionEvaluatorClient(conn).EvaluateFunction(t.Context(),
				&evaluator.EvaluateFunctionRequest{Image: "fn", ResourceList: []byte(conformance.List)})
			if got := status.Code(err); got != test.want {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil || applet.Probe([]string{"-addr", "localhost:" + port}) != 0 {
		t.Error("probes of Kubernetes, which have no certificate, find the pod unhealthy")
	}
}

func TestBrokenTLSSettings(t *testing.T) {
	args, environ := secured(mtlstest.NewAuthority(t, time.Hour))
	for name, tc := range map[string]struct {
		secret string
		args   []string
	}{
		"ID":      {secret, []string{"--tls-id=pod"}},
		"secret":  {"short", nil},
		"callers": {secret, []string{"--tls-callers=all"}},
	} {
		t.Run(name, func(t *testing.T) {
			environ[0] = "FNR_TLS_SECRET=" + tc.secret
			_, err := wrapper.LoadConfig(slices.Concat(args, tc.args, []string{"--", "fn"}), environ, t.Output())
			if err == nil || !strings.Contains(err.Error(), "--tls-") || strings.Contains(err.Error(), "short") {
				t.Errorf("got %v, want an error that names the flag, without a secret", err)
			}
		})
	}
}
