// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// issuing is a mode in which the system issues its certificates itself.
type issuing struct {
	mode, component string
	// deployment is the program that issues, and prefix that of its variables.
	deployment, prefix string
	// authority is in this namespace, and certificates in these Secrets of the system's.
	namespace    func(place) string
	certificates []string
}

// The life of certificates, of which half is over when they are renewed, and of authorities.
const (
	issuedLife    = 50 * time.Second
	authorityLife = 30 * issuedLife
)

// TestIssuerRotatesUnderLoad has the system issue certificates that live for 50 seconds, and authorities that live for
// 25 minutes, under 30 callers. No request fails. A long run (make rotation ROTATION_TIME=19m) sees the next authority.
func TestIssuerRotatesUnderLoad(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	for _, i := range []issuing{
		{
			"microservices", "mutual-tls", "pod-manager", "FNR_", func(p place) string { return p.system },
			[]string{"gateway-tls", "image-resolver-tls"},
		},
		{
			"function-runner", "mutual-tls-pods", "function-runner", "FNR_",
			func(p place) string { return p.functions }, nil,
		},
	} {
		t.Run(i.mode, func(t *testing.T) {
			t.Parallel()
			i.rotates(t, aside("issuer-"+i.mode))
		})
	}
}

func (i issuing) rotates(t *testing.T, at place) {
	t.Helper()
	dir := manifests.Combine(t, filepath.Join(root, "deploy"), "base/"+i.mode, i.component)
	objects := s.OnTheBed(t, suite.Build(t, dir))
	for _, o := range objects {
		if o.GetKind() == "Deployment" && o.GetName() == i.deployment {
			suite.SetVariable(t, o, i.prefix+"ISSUER_LIFE", issuedLife.String())
		}
	}
	at.install(t, objects)
	certificates, authorities := make(map[string]bool), make(map[string]bool)
	want := len(i.certificates) * (1 + int(*rotateFor/issuedLife))
	at.thirtyCallers(t, func() {
		// A busy machine takes longer: only a test that fails waits for the timeout.
		enough := func(after time.Duration) bool {
			return (after >= *rotateFor && len(certificates) >= want) || after >= *rotateFor+suite.ConditionTimeout
		}
		for begin := time.Now(); !enough(time.Since(begin)); <-time.After(2 * time.Second) {
			at.touchPrograms(t)
			ctx := suite.Context(t)
			for _, name := range i.certificates {
				certificates[string(at.secret(ctx, t, name)[mtls.CertificateFile])] = true
			}
			authorities[string(i.place(at).secret(ctx, t, "function-runner-authority")[mtls.AuthoritiesFile])] = true
		}
	})
	t.Logf("%d certificates and %d sets of authorities", len(certificates), len(authorities))
	if len(certificates) < want {
		t.Errorf("%d certificates in %v and more, want %d", len(certificates), *rotateFor, want)
	}
	if *rotateFor > authorityLife*3/4 && len(authorities) < 2 {
		t.Errorf("%d sets of authorities in %v", len(authorities), *rotateFor)
	}
}

// place is where the Secret of the authority is.
func (i issuing) place(at place) place { return place{system: i.namespace(at)} }
