// SPDX-License-Identifier: Apache-2.0

package podmanager

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/libs/testing/mtlstest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// TestPodsFollowTheAuthorities has pods know the authorities that this program trusts.
func TestPodsFollowTheAuthorities(t *testing.T) {
	authority, next := mtlstest.NewAuthority(t, time.Hour), mtlstest.NewAuthority(t, time.Hour)
	dir, used := t.TempDir(), make(chan *podspec.TLS)
	const own = "spiffe://td/pod-manager"
	authority.Write(t, dir, own, time.Hour)
	callers := []string{"spiffe://td/gateway"}
	p := (&Config{PodTLS: true}).podTLS(mtlstest.Open(t, dir), callers, func(tls *podspec.TLS) { used <- tls })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	defer func() { cancel(); <-ended }()

	want := &podspec.TLS{
		IDs: "spiffe://td/function-pod", Authorities: string(authority.PEM), Callers: callers,
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
	<-(&Config{PodTLS: true}).podTLS(nil, nil, unused).known
	<-(&Config{}).podTLS(identity, nil, unused).known
	alone := (&Config{PodTLS: true}).podTLS(identity, nil, unused)
	if got := alone.current().Callers; len(got) != 1 || got[0] != "spiffe://td/function-runner" {
		t.Errorf("a program without gateways has pods accept %v, want itself", got)
	}
}
