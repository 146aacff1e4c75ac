// SPDX-License-Identifier: Apache-2.0

package servermain

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// TestCallersWithoutAnIdentityAreLogged names callers, for a program with a certificate and for one without.
func TestCallersWithoutAnIdentityAreLogged(t *testing.T) {
	tests := map[string]struct {
		set, warns bool
		identity   *mtls.Identity
	}{
		"callers alone":      {true, true, nil},
		"with an identity":   {true, false, new(mtls.Identity)},
		"neither":            {false, false, nil},
		"callers by default": {false, false, new(mtls.Identity)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FNR_CALLERS", "spiffe://example.com/a")
			if !tc.set {
				if err := os.Unsetenv("FNR_CALLERS"); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			warnOfCallers(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), tc.identity)
			if got := strings.Contains(out.String(), "FNR_TLS_DIRECTORY"); got != tc.warns {
				t.Errorf("it logs %q, want a warning: %t", out.String(), tc.warns)
			}
		})
	}
}
