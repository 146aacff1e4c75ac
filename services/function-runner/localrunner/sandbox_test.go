// SPDX-License-Identifier: Apache-2.0

//go:build linux

package localrunner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/services/function-runner/localrunner"
)

// TestPlaceOfTheStore checks the default of FNR_SANDBOX_STORE. Sandboxes of root cannot enter its home directory.
func TestPlaceOfTheStore(t *testing.T) {
	home := t.TempDir()
	ofHome := filepath.Join(home, ".cache", "function-runner", "images")
	if os.Getuid() == 0 {
		ofHome = "/var/cache/function-runner/images"
	}
	for name, tc := range map[string]struct{ store, cache, home, want string }{
		"setting":         {"/srv/images", "/cache", home, "/srv/images"},
		"XDG_CACHE_HOME":  {"", "/cache", home, "/cache/function-runner/images"},
		"home directory":  {"", "", home, ofHome},
		"neither of them": {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", tc.cache)
			t.Setenv("HOME", tc.home)
			settings := localrunner.SandboxSettings{SandboxStore: tc.store}
			if got := settings.Store().Dir; got != tc.want {
				t.Errorf("the store is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestErrorsNameVariables has wrong values of settings: errors name the variables as they were set, each once.
func TestErrorsNameVariables(t *testing.T) {
	for variable, value := range map[string]string{
		"FNR_SANDBOX":        "docker",
		"FNR_MAX_TEMP_BYTES": "-1",
		"FNR_TTL":            "5m", // a setting of function-runner, without effect here
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			_, err := localrunner.Load()
			if err == nil || !strings.Contains(err.Error(), variable+" is ") || strings.Count(err.Error(), "FNR_") > 1 {
				t.Errorf("Load = %v, want one error that names the variable", err)
			}
		})
	}
}
