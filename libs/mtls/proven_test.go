// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
)

const (
	pod    = "spiffe://td/function-pod/default/set-namespace-1"
	secret = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func proofOf(t testing.TB, id, secret string) mtls.Proof {
	t.Helper()
	proof, err := mtls.NewProof(id, secret)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func made(t testing.TB, proof mtls.Proof, authorities []byte) *mtls.Identity {
	t.Helper()
	quiet := telemetry.Discard()
	identity, err := mtls.Make(proof, string(authorities), quiet.Log, quiet.Meters)
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// proven returns how a client connects to a server that proves itself.
func proven(t testing.TB, client *mtls.Identity, id, secret string) *tls.Config {
	t.Helper()
	secure, err := client.ClientOfProven(id, secret)
	if err != nil {
		t.Fatal(err)
	}
	return secure
}

// TestProvenServers has clients accept the one server that knows the secret, and the server the one client that
// its authority knows.
func TestProvenServers(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	address := start(t, made(t, proofOf(t, pod, secret), authority.PEM))
	own := authority.Identity(t, caller)
	for name, test := range map[string]struct {
		client         *mtls.Identity
		server, secret string
		err            string
	}{
		"right":                {own, pod, secret, ""},
		"another secret":       {own, pod, strings.ToLower(secret), "does not prove it"},
		"another pod":          {own, pod + "0", secret, "not " + pod + "0"},
		"another caller":       {authority.Identity(t, server), pod, secret, "may not call"},
		"a client without any": {nil, pod, secret, "requires a valid client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := "https://"
			if test.client == nil {
				scheme = "http://"
			}
			err := dial(t, scheme+address, proven(t, test.client, test.server, test.secret)).call(t.Context())
			if (test.err == "" && err != nil) || (test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err))) {
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

// TestProvenServersRejectStrangers shows certificates that the server's authority has not issued. A client of TLS 1.3
// hears so when it reads: one that writes before may hear of a connection that was reset.
func TestProvenServersRejectStrangers(t *testing.T) {
	authority, stranger := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	address := start(t, made(t, proofOf(t, pod, secret), authority.PEM))
	for name, client := range map[string]*mtls.Identity{
		"a stranger's caller": stranger.Identity(t, caller),
		"a proven client":     made(t, proofOf(t, caller, secret), authority.PEM),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := (&tls.Dialer{Config: proven(t, client, pod, secret)}).DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err = conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "bad certificate") {
				t.Errorf("got %v, want a bad certificate", err)
			}
		})
	}
}

// TestProofsAreOfOneKey starts a server with the certificate of another, which it has seen.
func TestProofsAreOfOneKey(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	proof := proofOf(t, pod, secret)
	one, other := made(t, proof, authority.PEM), made(t, proof, authority.PEM)
	first, err := one.Server().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.Server().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	first.PrivateKey = second.PrivateKey // the public one is another's
	address := start(t, one)
	secure := proven(t, authority.Identity(t, caller), pod, secret)
	if err := dial(t, "https://"+address, secure).call(t.Context()); err == nil {
		t.Error("a copied certificate is accepted")
	}
}

// TestFollowers are told of the authorities that there are, and of each change.
func TestFollowers(t *testing.T) {
	authority, next := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	dir := t.TempDir()
	authority.Write(t, dir, server, time.Hour)
	quiet := telemetry.Discard()
	identity, err := mtls.Open(mtls.Config{Directory: dir}, quiet.Log, quiet.Meters)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	identity.OnChange(func() { seen = append(seen, identity.Authorities()) })
	authority.Write(t, dir, server, time.Hour, next)
	identity.Look(t.Context())
	if want := string(authority.PEM); len(seen) != 2 || seen[0] != want || seen[1] != want+string(next.PEM) {
		t.Errorf("told of %q", seen)
	}
	if identity.ID().String() != server {
		t.Errorf("the ID is %s", identity.ID())
	}
}

func TestBrokenProofs(t *testing.T) {
	for id, secret := range map[string]string{"": secret, "https://td/pod": secret, pod: secret[1:]} {
		if _, err := mtls.NewProof(id, secret); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: got %v, want an error without the secret", id, err)
		}
	}
}

func TestBrokenAuthoritiesOfCallers(t *testing.T) {
	quiet := telemetry.Discard()
	for _, text := range []string{"", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := mtls.Make(proofOf(t, pod, secret), text, quiet.Log, quiet.Meters); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
