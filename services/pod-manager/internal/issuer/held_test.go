// SPDX-License-Identifier: Apache-2.0

package issuer_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
	"github.com/krm-function-runner/function-runner/libs/testing/logtest"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
)

// held is a program whose certificate is in no Secret.
type held struct {
	identity *mtls.Identity
	mu       sync.Mutex
	refusals []error
}

func newHeld(t *testing.T) *held {
	t.Helper()
	quiet := telemetry.Discard()
	identity := mtls.Hold(quiet.Log, quiet.Meters)
	return &held{identity: identity}
}

// only has an issuer issue nothing but the program's certificate.
func (h *held) only(c *issuer.Config) {
	c.Certificates, c.Create = nil, true
	c.Held = &issuer.Held{
		ID: id("spiffe://function-runner/function-runner"), Use: h.identity.Replace,
		Refused: func(_ context.Context, why error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refusals = append(h.refusals, why)
		},
	}
}

// refused returns how often the certificate was refused.
func (h *held) refused() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.refusals)
}

// TestHeldCertificatesShareAnAuthority runs two replicas where the Secret does not exist yet. Their certificates are
// renewed for three lives of authorities, and both trust the same ones.
func TestHeldCertificatesShareAnAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{client: fake.NewClientset(), log: new(logtest.Log)}
		replicas := []*held{newHeld(t), newHeld(t)}
		for _, h := range replicas {
			servetest.Go(t, w.issuer(t, time.Hour, h.only).Run)
		}
		seen := map[string]bool{}
		for range 3 * 8 * 4 {
			<-time.After(15 * time.Minute)
			if a, b := replicas[0].identity.Authorities(), replicas[1].identity.Authorities(); a == "" || a != b {
				t.Fatalf("the replicas trust different authorities:\n%s\n%s", a, b)
			}
			for _, h := range replicas {
				pair, err := h.identity.Server().GetCertificate(nil)
				if err != nil {
					t.Fatal(err)
				}
				if time.Now().After(pair.Leaf.NotAfter) {
					t.Fatal("a replica has a certificate that has expired")
				}
				seen[string(pair.Leaf.Raw)] = true
			}
		}
		if len(seen) < 2*3*8 {
			t.Errorf("%d certificates in 24 lives of two replicas", len(seen))
		}
		if secret := w.data(t, authority); len(secret) != 2 {
			t.Errorf("the Secret has %v, want the authorities and their keys alone", maps.Keys(secret))
		}
	})
}

// TestRefusedSecretsAreReported runs without the right to the Secret, and gets it later.
func TestRefusedSecretsAreReported(t *testing.T) {
	for _, verb := range []string{"get", "create"} {
		synctest.Test(t, func(t *testing.T) {
			w, h := &world{client: fake.NewClientset(), log: new(logtest.Log)}, newHeld(t)
			var granted bool
			var mu sync.Mutex
			w.fail(verb, func() error {
				mu.Lock()
				defer mu.Unlock()
				if granted {
					return nil
				}
				return apierrors.NewForbidden(corev1.Resource("secrets"), authority, nil)
			})
			i := w.issuer(t, time.Hour, h.only)
			servetest.Go(t, i.Run)
			synctest.Wait()
			if h.refused() != 1 || h.identity.Authorities() != "" || len(i.Details()) != 1 {
				t.Errorf("without %s: %d refusals, details %q", verb, h.refused(), i.Details())
			}
			mu.Lock()
			granted = true
			mu.Unlock()
			<-time.After(2 * time.Minute)
			if h.identity.Authorities() == "" || len(i.Details()) != 0 {
				t.Errorf("with %s there is no certificate: %q", verb, i.Details())
			}
		})
	}
}
