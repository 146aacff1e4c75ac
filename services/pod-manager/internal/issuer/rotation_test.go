// SPDX-License-Identifier: Apache-2.0

package issuer_test

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/testing/servetest"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/issuer"
)

// TestLateReadersTrustEachOther rotates certificates and authorities for the lives of five authorities.
// Programs read their Secrets at once, or as late as two fifths of a certificate's life.
func TestLateReadersTrustEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const life, step = 24 * time.Hour, 3 * time.Hour
		w := newWorld(t)
		servetest.Go(t, w.issuer(t, life, func(c *issuer.Config) { c.Pause = time.Hour }).Run)
		synctest.Wait()
		delays := []int{0, int(life * 2 / 5 / step)}
		var history []map[string]map[string][]byte
		seen := map[string]bool{}
		for range 5 * 8 * int(life/step) {
			<-time.After(step)
			synctest.Wait()
			now := map[string]map[string][]byte{}
			for name := range ids {
				now[name] = w.data(t, name)
			}
			seen[string(now["gateway-tls"][mtls.AuthoritiesFile])] = true
			history = append(history, now)
			for _, ours := range delays {
				for _, theirs := range delays {
					last := len(history) - 1
					trusts(t, history[max(0, last-ours)]["gateway-tls"], history[max(0, last-theirs)]["pod-manager-tls"])
				}
			}
		}
		if len(seen) < 8 {
			t.Errorf("%d sets of authorities, want each to be added and removed", len(seen))
		}
		if n := w.log.Count("certificate issued"); n < 2*5*8 || n > 2*5*8*3 {
			t.Errorf("%d certificates, want one of each program for each half of a life", n)
		}
	})
}

// trusts fails the test if a program with one Secret does not accept the certificate in another.
func trusts(t *testing.T, ours, theirs map[string][]byte) {
	t.Helper()
	pair, err := tls.X509KeyPair(theirs[mtls.CertificateFile], theirs[mtls.KeyFile])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ours[mtls.AuthoritiesFile])
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		options := x509.VerifyOptions{Roots: roots, CurrentTime: time.Now(), KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := pair.Leaf.Verify(options); err != nil {
			t.Fatalf("at %v: %v", time.Now(), err)
		}
	}
	if id, err := mtls.IDOf(pair.Leaf); err != nil || id != ids["pod-manager-tls"] {
		t.Fatalf("the certificate is for %s, %v", id, err)
	}
}
