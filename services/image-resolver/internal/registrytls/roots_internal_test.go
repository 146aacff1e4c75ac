// SPDX-License-Identifier: Apache-2.0

package registrytls

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	_ "github.com/krm-function-runner/function-runner/libs/servermain" // as all programs do
	"github.com/krm-function-runner/function-runner/libs/testing/rerun"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
)

// TestAuthoritiesWhereTheSystemHasNone is how the program finds itself in its image: it
// trusts public registries, and the registries of the directory.
func TestAuthoritiesWhereTheSystemHasNone(t *testing.T) {
	if _, there := rerun.Test(t, "", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent"); !there {
		return
	}
	own := testcert.NewAuthority(t).PEM
	config, err := loadConfig(map[string][]byte{"ca.crt": own})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(own)
	known := map[string][]byte{"its own": block.Bytes}
	for root := range bundle.Roots() {
		known["a public one"] = root.Certificate
		break
	}
	for name, der := range known {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cert.Verify(
			x509.VerifyOptions{Roots: config.RootCAs, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}},
		); err != nil {
			t.Errorf("%s is not trusted: %v", name, err)
		}
	}
	if len(known) != 2 {
		t.Error("there are no public authorities to try")
	}
}
