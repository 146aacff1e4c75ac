// SPDX-License-Identifier: Apache-2.0

package identify_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/identify"
)

// user is whose each token is.
type user string

func (u user) Identify(context.Context, string, string) (caller.Identity, error) {
	return caller.Identity{ID: string(u), Kind: caller.Token}, nil
}

// TestUsersAreNamedLikeNoCertificate has a user of Kubernetes with the name of a program: rules of policies that
// compare caller.id alone would take it for that.
func TestUsersAreNamedLikeNoCertificate(t *testing.T) {
	for name, class := range map[user]fault.Class{
		"system:serviceaccount:a:b": 0, "spiffe://function-runner/gateway": fault.Denied,
		"SPIFFE://function-runner/gateway": fault.Denied,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		r.TLS = new(tls.ConnectionState)
		r.Header.Set("Authorization", "Bearer t")
		_, err := identify.Access(identify.Callers{Users: []string{"*"}, Tokens: name})(r)
		if (err == nil) != (class == 0) || err != nil && fault.Of(err) != class {
			t.Errorf("%s: %v, want class %v", name, err, class)
		}
	}
}
