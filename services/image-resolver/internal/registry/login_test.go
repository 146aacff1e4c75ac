// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// TestCredentialsOfAllKinds has registries that require tokens, and credentials as docker configurations have them.
func TestCredentialsOfAllKinds(t *testing.T) {
	tests := map[string]struct {
		reason string
		auth   authn.AuthConfig
		// knowsOAuth is false for token servers that know only GET.
		knowsOAuth bool
		requests   string // to the token server
	}{
		"none":           {"public images need tokens too", authn.AuthConfig{}, false, "GET "},
		"password":       {"the usual case", authn.AuthConfig{Username: "u", Password: secret}, false, "GET Basic"},
		"identity token": {"docker login may give one", authn.AuthConfig{IdentityToken: secret}, true, "POST " + secret},
		"identity token, not known": {
			"not all servers know them", authn.AuthConfig{IdentityToken: secret}, false, "POST " + secret + ", GET ",
		},
		"registry token": {"it is used as it is", authn.AuthConfig{RegistryToken: "good"}, false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var requests []string
			w := newWorld(t)
			w.Insecure = []string{"registry.example"}
			w.Credentials = fixed{"registry.example": tc.auth}
			r := w.add(t, "registry.example", testregistry.On("/", func(
				rw http.ResponseWriter, req *http.Request, next http.Handler,
			) {
				switch {
				case req.URL.Path == "/token":
					if err := req.ParseForm(); err != nil {
						t.Error(err)
					}
					kind, _, _ := strings.Cut(req.Header.Get("Authorization"), " ")
					requests = append(requests, req.Method+" "+kind+req.PostForm.Get("refresh_token"))
					if req.Form.Get("scope") != "repository:fn:pull" || req.Form.Get("service") != "s" || req.Form.Get("a") != "b" {
						t.Errorf("a token for %v", req.Form)
					}
					if req.Method == http.MethodPost && !tc.knowsOAuth {
						http.NotFound(rw, req)
						return
					}
					_, _ = io.WriteString(rw, `{"access_token":"good"}`)
				case req.Header.Get("Authorization") == "Bearer good":
					next.ServeHTTP(rw, req)
				default:
					rw.Header().Set("WWW-Authenticate", `Bearer realm="http://registry.example/token?a=b",service="s"`)
					rw.WriteHeader(http.StatusUnauthorized)
				}
			}))
			r.Push(t, "fn:v1", v1.Config{Cmd: []string{"fn"}})
			if _, err := w.manifest(t, "registry.example/fn", "v1"); err != nil {
				t.Errorf("%v: %s", err, tc.reason)
			}
			if got := strings.Join(requests, ", "); got != tc.requests {
				t.Errorf("the token server got %q, want %q: %s", got, tc.requests, tc.reason)
			}
		})
	}
}

// TestScopeOfALaterChallenge has a registry that wants another scope for its manifests than the usual one.
func TestScopeOfALaterChallenge(t *testing.T) {
	const scope = "repository:project/fn:pull"
	w := newWorld(t)
	w.Insecure = []string{"registry.example"}
	r := w.add(t, "registry.example", testregistry.On("/", func(
		rw http.ResponseWriter, req *http.Request, next http.Handler,
	) {
		switch {
		case req.URL.Path == "/token":
			_, _ = io.WriteString(rw, `{"token":"`+req.URL.Query().Get("scope")+`"}`)
		case req.Header.Get("Authorization") == "Bearer "+scope,
			req.URL.Path == "/v2/" && req.Header.Get("Authorization") != "":
			next.ServeHTTP(rw, req)
		default:
			rw.Header().Set("WWW-Authenticate", `Bearer realm="http://registry.example/token",service="s",scope="`+scope+`"`)
			rw.WriteHeader(http.StatusUnauthorized)
		}
	}))
	r.Push(t, "fn:v1", v1.Config{Cmd: []string{"fn"}})
	if _, err := w.manifest(t, "registry.example/fn", "v1"); err != nil {
		t.Error(err)
	}
}

// TestRedirectsMayRequireTokens has a registry whose manifests are at another one, which requires a token from all. The
// credentials of the first one stay with it.
func TestRedirectsMayRequireTokens(t *testing.T) {
	w := newWorld(t)
	w.Insecure = []string{"registry.example", "store.example"}
	w.Credentials = fixed{"registry.example": {Username: "user", Password: secret}}
	w.add(t, "registry.example", sendTo("http://store.example/v2/fn/manifests/v1", "/manifests/v1"))
	store := w.add(t, "store.example", testregistry.On("/", func(
		rw http.ResponseWriter, req *http.Request, next http.Handler,
	) {
		if strings.HasPrefix(req.Header.Get("Authorization"), "Basic") {
			t.Errorf("%s gets the registry's password", req.URL)
		}
		switch {
		case req.URL.Path == "/token":
			_, _ = io.WriteString(rw, `{"token":"good"}`)
		case req.Header.Get("Authorization") == "Bearer good":
			next.ServeHTTP(rw, req)
		default:
			rw.Header().Set("WWW-Authenticate", `Bearer realm="http://store.example/token",service="s"`)
			rw.WriteHeader(http.StatusUnauthorized)
		}
	}))
	store.Push(t, "fn:v1", v1.Config{Cmd: []string{"fn"}})
	if _, err := w.manifest(t, "registry.example/fn", "v1"); err != nil {
		t.Error(err)
	}
}
