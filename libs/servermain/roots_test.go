// SPDX-License-Identifier: Apache-2.0

package servermain_test

import (
	"crypto/x509"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/rerun"
)

// TestAuthoritiesWhereTheSystemHasNone runs as programs do in their images.
func TestAuthoritiesWhereTheSystemHasNone(t *testing.T) {
	if _, there := rerun.Test(t, "", "SSL_CERT_FILE=/nonexistent", "SSL_CERT_DIR=/nonexistent"); !there {
		return
	}
	pool, err := x509.SystemCertPool()
	if err != nil || pool.Equal(x509.NewCertPool()) {
		t.Errorf("no authority is trusted (%v), want the built-in ones", err)
	}
}
