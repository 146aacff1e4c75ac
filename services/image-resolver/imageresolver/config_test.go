// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/image-resolver/imageresolver"
)

func TestConfig(t *testing.T) {
	tests := map[string]struct {
		reason string
		env    map[string]string
		says   string // in the error; empty if accepted
	}{
		"defaults": {"nothing has to be set", nil, ""},
		"all": {"the syntax of lists and pairs", map[string]string{
			"FNR_AUTH_SECRET_PATH": "/a", "FNR_TLS_SECRET_PATH": "/b",
			"FNR_REGISTRY_TLS_PATHS": "r.io:5000=/c,q.io=/d", "FNR_MIRRORS": "docker.io=mirror:5000/hub,docker.io=other/hub",
			"FNR_INSECURE_REGISTRIES": "r.io,q.io:80",
			"FNR_CACHE_TAG_TTL":       "1m", "FNR_PLATFORM": "linux/arm64,linux/amd64",
		}, ""},
		"spaces": {"users write them after commas", map[string]string{
			"FNR_REGISTRY_TLS_PATHS":  "r.io:5000 = /c , q.io=/d",
			"FNR_MIRRORS":             "docker.io = mirror:5000/hub, docker.io=other/hub",
			"FNR_INSECURE_REGISTRIES": "r.io, q.io:80 ",
		}, ""},
		"insecure, with a scheme": {
			"it would have no effect",
			map[string]string{"FNR_INSECURE_REGISTRIES": "a.io,http://r.io"},
			`FNR_INSECURE_REGISTRIES is "http://r.io"`,
		},
		"internal, with a path": {
			"it would have no effect",
			map[string]string{"FNR_INTERNAL_REGISTRIES": "r.io/team"},
			`FNR_INTERNAL_REGISTRIES is "r.io/team"`,
		},
		"internal, separated by a space": {
			"it would have no effect",
			map[string]string{"FNR_INTERNAL_REGISTRIES": "r.io q.io"},
			`FNR_INTERNAL_REGISTRIES is "r.io q.io"`,
		},
		"directory for a repository": {
			"it would have no effect", map[string]string{"FNR_REGISTRY_TLS_PATHS": "r.io/team=/a"}, "FNR_REGISTRY_TLS_PATHS",
		},
		"mirror with a scheme": {
			"it is no host", map[string]string{"FNR_MIRRORS": "docker.io=https://mirror"}, `FNR_MIRRORS is "https://mirror"`,
		},
		"mirror of a URL": {
			"it would have no effect", map[string]string{"FNR_MIRRORS": "https://r.io=mirror"}, `FNR_MIRRORS is "https://r.io"`,
		},
		"no value": {"a mirror where?", map[string]string{"FNR_MIRRORS": "r.io= "}, "FNR_MIRRORS"},
		"no pair":  {"a mirror of what?", map[string]string{"FNR_MIRRORS": "mirror:5000"}, "FNR_MIRRORS"},
		"two directories": {
			"which of them?", map[string]string{"FNR_REGISTRY_TLS_PATHS": "r=/a,r=/b"}, "FNR_REGISTRY_TLS_PATHS",
		},
		"two spellings": {
			"of one registry",
			map[string]string{"FNR_REGISTRY_TLS_PATHS": "docker.io=/a,index.docker.io=/b"},
			"FNR_REGISTRY_TLS_PATHS",
		},
		"prefix": {
			"no short name would be one of an image",
			map[string]string{"FNR_DEFAULT_IMAGE_PREFIX": "https://r.io"},
			"FNR_DEFAULT_IMAGE_PREFIX",
		},
		"platform": {"half of one", map[string]string{"FNR_PLATFORM": "amd64"}, "FNR_PLATFORM"},
		"no time":  {"each use would wait", map[string]string{"FNR_CACHE_TAG_TTL": "0s"}, "FNR_CACHE_TAG_TTL"},
		"unknown":  {"a typing error", map[string]string{"FNR_MIRROR": "a=b"}, "FNR_MIRROR"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			var cfg imageresolver.Config
			err := config.Load(&cfg)
			if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%v, want %q: %s", err, tc.says, tc.reason)
			}
			if name != "all" && name != "spaces" {
				return
			}
			if !slices.Equal(cfg.Mirrors["docker.io"], []string{"mirror:5000/hub", "other/hub"}) ||
				!slices.Equal(cfg.RegistryTLSPaths["r.io:5000"], []string{"/c"}) ||
				!slices.Equal(cfg.InsecureRegistries, []string{"r.io", "q.io:80"}) {
				t.Errorf("read %+v", cfg)
			}
		})
	}
}
