// SPDX-License-Identifier: Apache-2.0

package podmanager_test

import (
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/config"
	"github.com/krm-function-runner/function-runner/services/pod-manager/podmanager"
)

func TestConfig(t *testing.T) {
	tests := map[string]struct {
		reason string
		env    map[string]string
		want   string // the error; none if empty
	}{
		"least": {"Porch's variable is enough", nil, ""},
		"no image": {
			"without it no pod can run",
			map[string]string{"WRAPPER_SERVER_IMAGE": ""},
			"WRAPPER_SERVER_IMAGE",
		},
		"no name": {
			"Kubernetes would refuse each pod",
			map[string]string{"WRAPPER_SERVER_IMAGE": "example.com/Wrapper:v1"},
			`"example.com/Wrapper:v1"`,
		},
		"namespace": {"likewise", map[string]string{"FNR_NAMESPACE": "Functions"}, `FNR_NAMESPACE is "Functions"`},
		"template":  {"likewise", map[string]string{"FNR_TEMPLATE": "pod_template"}, `FNR_TEMPLATE is "pod_template"`},
		"prefix": {
			"no short name would be one of an image",
			map[string]string{"FNR_DEFAULT_IMAGE_PREFIX": "a b"},
			`FNR_DEFAULT_IMAGE_PREFIX is "a b"`,
		},
		"launcher": {
			"a typing error must not choose another way",
			map[string]string{"FNR_LAUNCHER": "image"},
			`FNR_LAUNCHER is "image"`,
		},
		"endpoint": {"", map[string]string{"FNR_ENDPOINT": "pod"}, `FNR_ENDPOINT is "pod"`},
		"no pods":  {"", map[string]string{"FNR_MAX_PODS_PER_FUNCTION": "0"}, "FNR_MAX_PODS_PER_FUNCTION is 0"},
		"issuer":   {"the rest has defaults", map[string]string{"FNR_ISSUER_SECRET": "authority"}, ""},
		"issuer's certificates": {
			"no certificate could have it",
			map[string]string{"FNR_ISSUER_SECRET": "authority", "FNR_ISSUER_CERTIFICATES": "a=spiffe://x,b=https://x/y"},
			`FNR_ISSUER_CERTIFICATES is "a=spiffe://x,b=https://x/y"`,
		},
		"life": {
			"no kubelet updates volumes as fast",
			map[string]string{"FNR_ISSUER_SECRET": "authority", "FNR_ISSUER_LIFE": "20s"},
			"FNR_ISSUER_LIFE is 20s",
		},
		"no issuer":     {"an unused setting may be anything", map[string]string{"FNR_ISSUER_LIFE": "1s"}, ""},
		"time":          {"", map[string]string{"FNR_MAX_EVALUATION_TIME": "-1s"}, "FNR_MAX_EVALUATION_TIME is -1s"},
		"image address": {"", map[string]string{"FNR_IMAGE_RESOLVER": "image-resolver:9449"}, "FNR_IMAGE_RESOLVER"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
			for key, value := range tc.env {
				t.Setenv(key, value)
			}
			var cfg podmanager.Config
			err := config.Load(&cfg)
			if (tc.want == "" && err != nil) || (tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want))) {
				t.Errorf("error %v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

func TestPodEnv(t *testing.T) {
	env := podmanager.PodEnv([]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4317", "OTEL_SERVICE_NAME=pod-manager", "PATH=/bin",
		"OTEL_RESOURCE_ATTRIBUTES=a=b",
		"OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer x", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=Authorization=Bearer x",
		"OTEL_EXPORTER_OTLP_CLIENT_KEY=/key.pem", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/cert.pem",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.pem",
	})
	if len(env) != 1 || env["OTEL_EXPORTER_OTLP_ENDPOINT"] != "http://collector:4317" {
		t.Errorf("pods get %v, want where to send telemetry, not whose it is nor credentials", env)
	}
}
