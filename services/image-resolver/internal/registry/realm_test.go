// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// wanting is a registry that wants tokens of that server.
func wanting(realm string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") == "Bearer good" {
				next.ServeHTTP(w, req)
				return
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		})
	}
}

func TestWhereTokenServersMayBe(t *testing.T) {
	tests := map[string]struct {
		reason   string
		registry string
		found    string // where the registry's name leads
		realm    string
		moved    string // where the token server sends us, or empty
		asked    bool
	}{
		"by name": {
			"the usual case", "registry.example", "203.0.113.1", "https://tokens.example/token", "", true,
		},
		"public": {
			"an address is as good", "registry.example", "203.0.113.1", "https://203.0.113.7/token", "", true,
		},
		"private beside private": {"a company's registry", "10.1.2.3", "", "https://10.1.2.4/token", "", true},
		"another port":           {"a company's registry", "10.1.2.3", "", "https://10.1.2.3:5001/token", "", true},
		"private, by IPv6":       {"a company's registry", "10.1.2.3", "", "https://[fd00::7]:5001/token", "", true},
		"beside a name that is one": {
			"a registry in the cluster", "registry.example", "10.1.2.3", "https://10.1.2.4/token", "", true,
		},
		"beside this machine": {"a registry under development", "127.0.0.1", "", "https://10.1.2.4/token", "", true},
		"on this machine":     {"a registry under development", "127.0.0.1", "", "https://127.0.0.2:5001/token", "", true},
		"moved": {
			"it is asked where it is", "10.1.2.3", "", "https://10.1.2.4/token", "https://10.1.2.5/token", true,
		},
		"moved on itself": {"it is asked where it is", "10.1.2.3", "", "https://10.1.2.4/token", "/other", true},
		"private to public": {
			"a registry may lead outside", "registry.example", "203.0.113.1", "https://10.1.2.4/token", "", false,
		},
		"two addresses": {
			"one of them is public", "registry.example", "10.1.2.3,203.0.113.1", "https://10.1.2.4/token", "", false,
		},
		"unknown": {"nothing says that it is private", "registry.example", "", "https://10.1.2.4/token", "", false},
		"moved inside": {
			"a public one is not sent to a private one", "registry.example", "203.0.113.1", "https://tokens.example/token",
			"https://10.1.2.4/token", false,
		},
		"metadata":         {"it gives out credentials", "10.1.2.3", "", "https://169.254.169.254/token", "", false},
		"metadata in IPv6": {"it gives out credentials", "10.1.2.3", "", "https://[fd00:ec2::254]/token", "", false},
		"metadata, moved": {
			"it gives out credentials", "10.1.2.3", "", "https://10.1.2.4/token", "https://169.254.169.254/token", false,
		},
		"this machine": {"only a registry on it leads there", "10.1.2.3", "", "https://127.0.0.1/token", "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newEncrypted(t)
			w.Local = []string{"127.0.0.1"}
			w.Lookup = func(context.Context, string, string) (found []netip.Addr, err error) {
				if tc.found == "" {
					return nil, errors.New("no such host")
				}
				for s := range strings.SplitSeq(tc.found, ",") {
					found = append(found, netip.MustParseAddr(s))
				}
				return found, nil
			}
			w.addTLS(t, tc.registry, wanting(tc.realm)).Push(t, "fn:v1", v1.Config{})
			var asked atomic.Int64
			tokens := testregistry.Start(t, w.authority.Server(t, time.Now().Add(time.Hour)), func(http.Handler) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
					if tc.moved != "" && req.URL.Path == "/token" && asked.Add(1) == 1 {
						http.Redirect(rw, req, tc.moved, http.StatusTemporaryRedirect)
						return
					}
					asked.Add(1)
					_, _ = rw.Write([]byte(`{"token":"good"}`))
				})
			})
			for _, host := range []string{
				"tokens.example", "203.0.113.7", "10.1.2.4", "10.1.2.5", "fd00::7",
				"127.0.0.2", "169.254.169.254", "fd00:ec2::254", "10.1.2.3:5001",
			} {
				w.hosts[host] = tokens.Host
			}
			_, err := w.manifest(t, tc.registry+"/fn", "v1")
			switch {
			case tc.asked && err != nil:
				t.Errorf("%v: %s", err, tc.reason)
			case !tc.asked && (fault.Of(err) != fault.Precondition || strings.Contains(err.Error(), "address.invalid")):
				t.Errorf("%v, want a refusal: %s", err, tc.reason)
			}
			if !tc.asked && asked.Load() > int64(min(1, len(tc.moved))) {
				t.Errorf("asked %d times: %s", asked.Load(), tc.reason)
			}
		})
	}
}
