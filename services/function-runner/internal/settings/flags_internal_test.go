// SPDX-License-Identifier: Apache-2.0

package settings

import "testing"

// porchDefaults are all flags of Porch's function runner, of any version, and their defaults there.
// Manifests omit flags whose defaults fit.
var porchDefaults = map[string]string{
	"port":                           "9445",
	"disable-runtimes":               "",
	"log-level":                      "2",
	"default-image-prefix":           "ghcr.io/kptdev/krm-functions-catalog",
	"functions":                      "./functions",
	"config":                         "./config.yaml",
	"pod-cache-config":               "/pod-cache-config/pod-cache-config.yaml",
	"warm-up-pod-cache":              "true",
	"pod-namespace":                  "porch-fn-system",
	"pod-ttl":                        "30m0s",
	"scan-interval":                  "1m0s",
	"function-pod-template":          "",
	"max-request-body-size":          "6291456",
	"max-waitlist-length":            "2",
	"max-parallel-pods-per-function": "1",
	"max-grpc-retries":               "2",
	"enable-private-registries":      "false",
	"registry-auth-secret-path":      "/var/tmp/config-secret/.dockerconfigjson",
	"registry-auth-secret-name":      "auth-secret",
	"enable-private-registries-tls":  "false",
	"tls-secret-path":                "/var/tmp/tls-secret/",
}

// TestDefaults compares our defaults with Porch's.
func TestDefaults(t *testing.T) {
	t.Setenv("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1") // the pod runtime is on
	s, err := Load(nil, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range s.porchFlags() {
		got[f.name] = f.value.String()
	}
	for name, value := range porchDefaults {
		if found, ok := got[name]; !ok || found != value {
			t.Errorf("--%s is %q (there: %v), want %q", name, found, ok, value)
		}
	}
	for name := range got {
		if _, ok := porchDefaults[name]; !ok {
			t.Errorf("--%s is not a flag of Porch", name)
		}
	}
}
