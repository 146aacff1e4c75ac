// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"crypto/rand"
	"crypto/tls"
	"net"
	"testing"

	"github.com/krm-function-runner/function-runner/test/internal/pki"
)

// issue creates an authority and a certificate of it for a host:port whose host is an address. It
// returns the certificate and the authority's PEM.
func issue(t *testing.T, hostPort string) (tls.Certificate, []byte) {
	t.Helper()
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := pki.NewAuthority("authority " + rand.Text())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Server(host, host)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, authority.Cert
}
