// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/await"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// TestHeldCertificate has a program keep its certificate in memory, with another one in between.
func TestHeldCertificate(t *testing.T) {
	authority, tel := mtlstest.NewAuthority(t, time.Hour), telemetry.Discard()
	identity := mtls.Hold(tel.Log, tel.Meters)
	servetest.Go(t, identity.Run)
	address := start(t, identity)
	call := func() error {
		secure := authority.Identity(t, caller).ClientOfSibling("server")
		return dial(t, "https://"+address, secure).call(t.Context())
	}
	if err := call(); err == nil {
		t.Error("a server without a certificate answers")
	}
	for range 2 {
		if err := identity.Replace(files(t, authority, time.Hour)); err != nil {
			t.Fatal(err)
		}
		<-identity.Available()
		if err := call(); err != nil {
			t.Errorf("with a certificate: %v", err)
		}
	}
	if err := identity.Replace(nil); err == nil {
		t.Error("nothing is accepted as a certificate")
	}
	if err := call(); err != nil {
		t.Errorf("after one that cannot be used: %v", err)
	}
	// On a busy machine, a certificate may expire before the program gets it.
	for life := time.Second; ; life *= 4 {
		if err := identity.Replace(files(t, authority, life)); err == nil {
			break
		} else if life > time.Minute {
			t.Fatal(err)
		}
	}
	await.Equal(t, "it has details", func() bool { return len(identity.Details()) > 0 }, true)
	if d := identity.Details(); !strings.Contains(d[0], "in memory expires") {
		t.Errorf("details %q, want the expiry", d)
	}
}

// files returns a certificate of the server as it would be in files.
func files(t *testing.T, authority *mtlstest.Authority, life time.Duration) map[string][]byte {
	t.Helper()
	dir, content := t.TempDir(), make(map[string][]byte)
	authority.Write(t, dir, server, life)
	for _, name := range []string{mtls.CertificateFile, mtls.KeyFile, mtls.AuthoritiesFile} {
		c, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		content[name] = c
	}
	return content
}

// TestAwaitedCertificate starts a server before its certificate is there.
func TestAwaitedCertificate(t *testing.T) {
	authority, tel := mtlstest.NewAuthority(t, time.Hour), telemetry.Discard()
	identity := mtls.Hold(tel.Log, tel.Meters)
	servetest.Go(t, identity.Run)
	address := start(t, identity)
	secure := authority.Identity(t, caller).ClientOfSibling("server")
	if err := dial(t, "https://"+address, secure).call(t.Context()); err == nil {
		t.Error("a server without a certificate answers")
	}
	own := dial(t, "https://"+start(t, authority.Identity(t, server)), identity.ClientOfSibling("server"))
	if err := own.call(t.Context()); err == nil {
		t.Error("a client without a certificate gets an answer")
	}
	select {
	case <-identity.Available():
		t.Error("a certificate is available before there is one")
	default:
	}

	if err := identity.Replace(files(t, authority, time.Hour)); err != nil {
		t.Fatal(err)
	}
	<-identity.Available()
	if err := dial(t, "https://"+address, secure).call(t.Context()); err != nil {
		t.Errorf("after the certificate has come: %v", err)
	}
	if d := identity.Details(); len(d) != 0 {
		t.Errorf("details %q after the certificate has come", d)
	}
}

// TestSiblings calls servers by the path of their IDs in the client's own trust domain.
func TestSiblings(t *testing.T) {
	authority := mtlstest.NewAuthority(t, time.Hour)
	client := authority.Identity(t, caller)
	for id, ok := range map[string]bool{
		"spiffe://td/pod-manager": true, "spiffe://td/image-resolver": false, "spiffe://other/pod-manager": false,
	} {
		address := start(t, authority.Identity(t, id))
		err := dial(t, "https://"+address, client.ClientOfSibling("pod-manager")).call(t.Context())
		if (err == nil) != ok {
			t.Errorf("%s: %v, want success %v", id, err, ok)
		}
	}
	if (*mtls.Identity)(nil).ClientOfSibling("pod-manager") != nil {
		t.Error("a program without an identity has a configuration")
	}
}
