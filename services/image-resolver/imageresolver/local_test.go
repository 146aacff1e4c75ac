// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testcert"
	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/testregistry"
)

// newTrap returns the address of a server that no request must reach, and its count of
// connections.
func newTrap(t *testing.T, settings *tls.Config) (address string, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	trap := httptest.NewUnstartedServer(http.NotFoundHandler())
	trap.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	trap.TLS = settings
	if settings != nil {
		trap.StartTLS()
	} else {
		trap.Start()
	}
	t.Cleanup(trap.Close)
	return trap.Listener.Addr().String(), connections
}

// TestImageNamesReachNoLocalAddress has callers choose images on addresses of this machine and
// of metadata services.
func TestImageNamesReachNoLocalAddress(t *testing.T) {
	authority := testcert.NewAuthority(t)
	encrypted, encryptedConnections := newTrap(t, authority.Server(t, time.Now().Add(time.Hour)))
	plain, plainConnections := newTrap(t, nil)
	_, encryptedPort, _ := net.SplitHostPort(encrypted)
	_, plainPort, _ := net.SplitHostPort(plain)
	cfg := newConfig(t)
	cfg.TLSSecretPath = t.TempDir()
	testcert.Write(t, cfg.TLSSecretPath, "ca.crt", authority.PEM)
	cfg.InsecureRegistries = []string{"127.0.0.1:1"} // which is another one
	r, _ := start(t, cfg)
	hosts := map[string]string{
		encrypted:                             "a port of this machine",
		"localhost:" + encryptedPort:          "names of it are no way around",
		"127.0.0.2:" + encryptedPort:          "the whole prefix is loopback",
		"[::ffff:127.0.0.1]:" + encryptedPort: "IPv4 in IPv6",
		"[::1]:" + encryptedPort:              "IPv6",
		"0.0.0.0:" + encryptedPort:            "Linux takes it for loopback",
		"127.1:" + encryptedPort:              "resolvers take it for loopback",
		"2130706433:" + encryptedPort:         "resolvers take it for loopback",
		plain:                                 "plain HTTP",
		"localhost:" + plainPort:              "plain HTTP",
		"169.254.169.254":                     "metadata",
		"[fd00:ec2::254]":                     "metadata",
		"[64:ff9b::a9fe:a9fe]":                "metadata, through a gateway",
	}
	for host, reason := range hosts {
		_, err := resolve(t, r, host+"/fn:v1")
		if class := fault.Of(err); class == fault.Invalid && strings.Contains(err.Error(), "not a valid image name") {
			continue // some forms are no hosts in image names
		} else if class != fault.Precondition {
			t.Errorf("%s: %v, want that it is rejected: %s", host, err, reason)
			continue
		}
		expectText(t, err, "local address", "FNR_INSECURE_REGISTRIES")
	}
	if got := encryptedConnections.Load() + plainConnections.Load(); got != 0 {
		t.Errorf("%d connections to this machine", got)
	}
}

// TestListedRegistriesMayBeLocal has each setting that lists registries name one on this machine.
func TestListedRegistriesMayBeLocal(t *testing.T) {
	authority, directory := testcert.NewAuthority(t), t.TempDir()
	testcert.Write(t, directory, "ca.crt", authority.PEM)
	encrypted := testregistry.Start(t, authority.Server(t, time.Now().Add(time.Hour)))
	encrypted.Push(t, "fn:v1", function)
	plain := testregistry.Start(t, nil)
	plain.Push(t, "fn:v1", function)
	tests := map[string]struct {
		reason string
		image  string
		edit   func(*imageresolver.Config)
		says   string // in the error; empty for success
	}{
		"insecure": {
			"listed for plain HTTP", plain.Host, func(c *imageresolver.Config) { c.InsecureRegistries = []string{plain.Host} },
			"",
		},
		"TLS directory": {
			"listed with its certificates", encrypted.Host,
			func(c *imageresolver.Config) { c.RegistryTLSPaths = imageresolver.Pairs{encrypted.Host: {directory}} }, "",
		},
		"mirror": {
			"listed as a mirror", "registry.invalid",
			func(c *imageresolver.Config) { c.Mirrors = imageresolver.Pairs{"registry.invalid": {encrypted.Host}} }, "",
		},
		"mirrored": {
			"a mirror lists itself, and not what it mirrors", encrypted.Host,
			func(c *imageresolver.Config) { c.Mirrors = imageresolver.Pairs{encrypted.Host: {"mirror.invalid"}} },
			"local address",
		},
		"TLS, plain": {
			"only where plain HTTP is listed", plain.Host,
			func(c *imageresolver.Config) { c.RegistryTLSPaths = imageresolver.Pairs{plain.Host: {directory}} },
			"listed as insecure",
		},
		"without a port": {
			"another registry is listed", plain.Host,
			func(c *imageresolver.Config) { c.InsecureRegistries = []string{"127.0.0.1"} }, "local address",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := newConfig(t)
			cfg.TLSSecretPath = directory
			tc.edit(&cfg)
			r, _ := start(t, cfg)
			_, err := resolve(t, r, tc.image+"/fn:v1")
			if tc.says == "" {
				if err != nil {
					t.Errorf("%v: %s", err, tc.reason)
				}
				return
			}
			if fault.Of(err) != fault.Precondition {
				t.Fatalf("%v, want that it is rejected: %s", err, tc.reason)
			}
			expectText(t, err, tc.says)
		})
	}
}
