// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	tests := map[string]struct {
		stamped, built, want string
		reason               string
	}{
		"release":       {"v1.2.3", "v0.0.0-2026-abc", "v1.2.3", "a release says which one it is"},
		"from a commit": {"", "v0.0.0-2026-abc", "v0.0.0-2026-abc", "Go knows the commit"},
		"elsewhere":     {"", "(devel)", "devel", "Go knows nothing outside of a checkout"},
		"test":          {"", "", "devel", "tests have no version"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := format(tc.stamped, &debug.BuildInfo{Main: debug.Module{Version: tc.built}}); got != tc.want {
				t.Errorf("version %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
	if String() == "" {
		t.Error("this test has no version at all")
	}
}
