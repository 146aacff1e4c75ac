// SPDX-License-Identifier: Apache-2.0

package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/function-runner/internal/settings"
)

// everyFlag is a command line with all flags of any version of Porch, in Go's two spellings.
func everyFlag(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	auth := filepath.Join(dir, ".dockerconfigjson")
	if err := os.WriteFile(auth, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"-port=9445", "--disable-runtimes=exec", "--log-level", "4", "--default-image-prefix=example.com/fns",
		"--functions=/functions", "--config=/config.yaml",
		"--pod-cache-config=/cache.yaml", "--warm-up-pod-cache=false", "--pod-namespace=fns", "--pod-ttl=10m",
		"--scan-interval=30s", "--function-pod-template=template", "--max-request-body-size=1Mi",
		"--max-waitlist-length=3", "--max-parallel-pods-per-function=4", "--max-grpc-retries=5",
		"--enable-private-registries", "--registry-auth-secret-path=" + auth, "--registry-auth-secret-name=secret",
		"--enable-private-registries-tls=true", "--tls-secret-path=" + dir,
	}
}

func TestEveryFlagOfPorchArrives(t *testing.T) {
	t.Setenv("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
	s, err := settings.Load(everyFlag(t), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{
		"port":             s.Gateway.Address == ":9445",
		"disable-runtimes": slices.Equal(s.Gateway.DisableRuntimes, []string{"exec"}),
		"log-level":        s.Telemetry.LogVerbosity == 4,
		"prefix": s.Gateway.DefaultImagePrefix == "example.com/fns" &&
			s.ImageResolver.DefaultImagePrefix == "example.com/fns" && s.PodManager.DefaultImagePrefix == "example.com/fns",
		"functions":     s.Gateway.Exec.Functions == "/functions",
		"config":        s.Gateway.Exec.Config == "/config.yaml",
		"body size":     s.Gateway.MaxMessageBytes == 1048576 && s.PodManager.MaxMessageBytes == 1048576,
		"retries":       s.Gateway.Pod.MaxRetries == 5,
		"namespace":     s.PodManager.Namespace == "fns",
		"ttl":           s.PodManager.TTL == 10*time.Minute,
		"scan":          s.PodManager.ScanInterval == 30*time.Second,
		"template":      s.PodManager.Template == "template",
		"cache":         s.PodManager.CacheConfig == "/cache.yaml",
		"warm up":       !s.PodManager.WarmUp,
		"waitlist":      s.PodManager.MaxWaitlistLength == 3,
		"pods":          s.PodManager.MaxPodsPerFunction == 4,
		"secret":        s.PodManager.PullSecret == "secret",
		"wrapper image": s.PodManager.WrapperServerImage == "example.com/wrapper:v1",
		"private":       s.ImageResolver.TLSSecretPath != "",
		"credentials": strings.HasSuffix(s.ImageResolver.AuthSecretPath, ".dockerconfigjson") &&
			s.PodManager.AuthSecretPath == s.ImageResolver.AuthSecretPath,
	} {
		if !ok {
			t.Errorf("%s did not arrive: %+v", name, s)
		}
	}
}

// TestLoadRejectsUnknownVariables has a typing error, which would have no effect.
func TestLoadRejectsUnknownVariables(t *testing.T) {
	t.Setenv("FNR_AUTH_SECRET_PAHT", "1")
	_, err := settings.Load([]string{"--disable-runtimes=pod"}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "FNR_AUTH_SECRET_PATH meant") {
		t.Errorf("Load = %v, want an error that names the variable that is meant", err)
	}
}

// TestSharedSettingsArrive sets variables that several services have: each gets the value.
func TestSharedSettingsArrive(t *testing.T) {
	auth := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(auth, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, value := range map[string]string{
		"WRAPPER_SERVER_IMAGE": "example.com/wrapper:v1", "FNR_ADDRESS": ":1",
		"FNR_DEFAULT_IMAGE_PREFIX": "example.com",
		"FNR_MAX_MESSAGE_BYTES":    "64Ki",
		"FNR_AUTH_SECRET_PATH":     auth, "FNR_CONFINE": "off", "FNR_FUNCTION_NETWORK": "example.com/net",
		"FNR_POLICY_DENY":         "example.com/bad",
		"FNR_MAX_EVALUATION_TIME": "7s",
	} {
		t.Setenv(variable, value)
	}
	s, err := settings.Load(nil, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p, r := s.PodManager, s.ImageResolver
	if s.Gateway.Address != ":1" || p.DefaultImagePrefix != "example.com" || r.DefaultImagePrefix != "example.com" ||
		p.MaxMessageBytes != 65536 ||
		p.AuthSecretPath != auth || r.AuthSecretPath != auth ||
		s.Gateway.Confine != "off" || p.Confine != "off" ||
		len(s.Gateway.FunctionNetwork) != 1 || len(p.FunctionNetwork) != 1 ||
		len(s.Gateway.Policy.Deny) != 1 ||
		s.Gateway.MaxEvaluationTime != 7*time.Second || p.MaxEvaluationTime != 7*time.Second {
		t.Errorf("settings are %+v", s)
	}
}

// TestSettingsOfSandboxes has wrong values of settings that have no prefix here: errors name the variables as they were
// set, each once.
func TestSettingsOfSandboxes(t *testing.T) {
	for variable, value := range map[string]string{
		"FNR_SANDBOX":        "docker",
		"FNR_MAX_TEMP_BYTES": "-1",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv("FNR_SANDBOX", "auto")
			t.Setenv(variable, value)
			_, err := settings.Load([]string{"--disable-runtimes=exec,pod"}, t.Output())
			if err == nil || !strings.Contains(err.Error(), variable+" is ") || strings.Count(err.Error(), "FNR_") > 1 {
				t.Errorf("Load = %v, want one error that names the variable", err)
			}
		})
	}
}

// TestProblemOfASharedSettingIsNamedOnce has a wrong value of a setting that gateway and pod-manager have.
func TestProblemOfASharedSettingIsNamedOnce(t *testing.T) {
	t.Setenv("WRAPPER_SERVER_IMAGE", "example.com/wrapper:v1")
	t.Setenv("FNR_FUNCTION_NETWORK", "*")
	_, err := settings.Load(nil, t.Output())
	if err == nil || strings.Count(err.Error(), "FNR_FUNCTION_NETWORK") != 1 {
		t.Errorf("Load = %v, want one error that names the variable", err)
	}
}

func TestLoadRejects(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"no wrapper image": {"as with Porch, the pod runtime needs it", nil, "WRAPPER_SERVER_IMAGE is"},
		"port":             {"flags are named as given", []string{"--port=0"}, "port"},
		"runtime": {
			"a typing error must not enable anything",
			[]string{"--disable-runtimes=pods"},
			`--disable-runtimes is "pods"`,
		},
		"log level": {"", []string{"--disable-runtimes=pod", "--log-level=6"}, "--log-level is 6"},
		"size": {
			"",
			[]string{"--disable-runtimes=pod", "--max-request-body-size=0"},
			"--max-request-body-size is 0",
		},
		"no size": {
			"what is allowed is said, too",
			[]string{"--max-request-body-size=6M"},
			`"6M" for flag -max-request-body-size: it must be a number of bytes, or a size such as 6Mi`,
		},
		"ttl": {"", []string{"--pod-ttl=0s"}, "--pod-ttl is 0s"},
		"no duration": {
			"what is allowed is said, too",
			[]string{"--pod-ttl=30"},
			`"30" for flag -pod-ttl: it must be a time with its unit`,
		},
		"no number": {
			"likewise",
			[]string{"--log-level=all"},
			`"all" for flag -log-level: it must be a whole number`,
		},
		"neither": {
			"likewise",
			[]string{"--warm-up-pod-cache=maybe"},
			`"maybe" for -warm-up-pod-cache: it must be true or false`,
		},
		"prefix": {"no short name would be one of an image", []string{
			"--disable-runtimes=pod",
			"--default-image-prefix=ghcr.io/Kptdev",
		}, `--default-image-prefix is "ghcr.io/Kptdev"`},
		"no file": {"flags are named as given", []string{"--disable-runtimes=pod", "--config="}, `--config is ""`},
		"no directory": {
			"it would be the working directory",
			[]string{"--disable-runtimes=pod", "--functions="},
			`--functions is ""`,
		},
		"namespace": {
			"Kubernetes would refuse each call",
			[]string{"--pod-namespace=Functions"},
			`--pod-namespace is "Functions"`,
		},
		"template": {
			"likewise",
			[]string{"--function-pod-template=pod_template"},
			`--function-pod-template is "pod_template"`,
		},
		"credentials": {
			"enabled and missing is a mistake",
			[]string{"--disable-runtimes=pod", "--enable-private-registries"},
			"--registry-auth-secret-path is",
		},
		"certificates": {
			"",
			[]string{"--disable-runtimes=pod", "--enable-private-registries-tls"},
			"--tls-secret-path is",
		},
		"argument": {
			"flags end at the first argument, which would hide the rest",
			[]string{"serve", "--port=1"},
			`"serve"`,
		},
		"unknown": {"", []string{"--frobnicate"}, "frobnicate"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := settings.Load(tc.args, t.Output()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Load(%q) = %v, want an error that says %q: %s", tc.args, err, tc.want, tc.reason)
			}
		})
	}
}

func TestHelpListsEveryFlag(t *testing.T) {
	var help strings.Builder
	if _, err := settings.Load([]string{"--help"}, &help); !errors.Is(err, settings.ErrHelp) {
		t.Fatalf("Load = %v", err)
	}
	for _, arg := range everyFlag(t) {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && !strings.Contains(help.String(), "-"+name) {
			t.Errorf("help does not list %s", name)
		}
	}
}
