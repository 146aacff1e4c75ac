// SPDX-License-Identifier: Apache-2.0

package mtls_test

import (
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
)

// TestAwaitedCertificate starts a server before its certificate is there.
func TestAwaitedCertificate(t *testing.T) {
	authority, dir, tel := mtlstest.NewAuthority(t, time.Hour), t.TempDir(), telemetry.Discard()
	identity, err := mtls.Open(mtls.Config{Directory: dir, Awaited: true}, tel.Log, tel.Meters)
	if err != nil {
		t.Fatal(err)
	}
	servetest.Go(t, identity.Run)
	address := start(t, identity)
	secure := authority.Identity(t, caller).Client(patterns(t, server))
	if err := dial(t, "https://"+address, secure).call(t.Context()); err == nil {
		t.Error("a server without a certificate answers")
	}
	own := dial(t, "https://"+start(t, authority.Identity(t, server)), identity.Client(patterns(t, server)))
	if err := own.call(t.Context()); err == nil {
		t.Error("a client without a certificate gets an answer")
	}
	if d := identity.Details(); len(d) != 1 || !strings.Contains(d[0], "wait for the certificate") {
		t.Errorf("details %q, want what is awaited", d)
	}
	select {
	case <-identity.Available():
		t.Error("a certificate is available before there is one")
	default:
	}

	authority.Write(t, dir, server, time.Hour)
	<-identity.Available()
	if err := dial(t, "https://"+address, secure).call(t.Context()); err != nil {
		t.Errorf("after the certificate has come: %v", err)
	}
	if d := identity.Details(); len(d) != 0 {
		t.Errorf("details %q after the certificate has come", d)
	}
}
