// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/servermain"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// podTLSOf returns what keeps the certificates of the pods of a program.
func podTLSOf(t *testing.T, c *Config, identity *mtls.Identity, of callers, use func(*podspec.TLS)) *podTLS {
	t.Helper()
	return c.podTLS(of, use, servermain.Frame{Telemetry: telemetry.Discard(), Identity: identity})
}

// TestPodsFollowTheAuthorities has pods know the authorities that this program trusts.
func TestPodsFollowTheAuthorities(t *testing.T) {
	authority, next := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	dir, used := t.TempDir(), make(chan *podspec.TLS)
	const own = "spiffe://td/pod-manager"
	authority.Write(t, dir, own, time.Hour)
	ids := []string{"spiffe://td/gateway"}
	p := podTLSOf(t, &Config{PodTLS: true}, mtlstest.Open(t, dir), callers{ids: ids},
		func(tls *podspec.TLS) { used <- tls })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	defer func() { cancel(); <-ended }()

	want := &podspec.TLS{
		IDs: "spiffe://td/function-pod", Authorities: string(authority.PEM), Callers: ids,
	}
	if diff := cmp.Diff(want, <-used); diff != "" {
		t.Errorf("at the start (-want +got):\n%s", diff)
	}
	<-p.known
	authority.Write(t, dir, own, time.Hour, next)
	want.Authorities += string(next.PEM)
	if diff := cmp.Diff(want, <-used); diff != "" {
		t.Errorf("with a further authority (-want +got):\n%s", diff)
	}
}

func TestPodsWithoutCertificates(t *testing.T) {
	identity := mtlstest.NewAuthority(t, time.Hour).Identity(t, "spiffe://td/function-runner")
	unused := func(*podspec.TLS) { t.Error("pods get certificates") }
	<-podTLSOf(t, &Config{PodTLS: true}, nil, callers{}, unused).known
	<-podTLSOf(t, &Config{}, identity, callers{}, unused).known
	alone := podTLSOf(t, &Config{PodTLS: true}, identity, callers{}, unused)
	if got := alone.newSettings().Callers; len(got) != 1 || got[0] != "spiffe://td/function-runner" {
		t.Errorf("a program without gateways has pods accept %v, want itself", got)
	}
}
