// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"
	"testing"
)

func TestMendCommand(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]string
		programs []string
		want     string
	}{
		"Ubuntu 24.04": {
			map[string]string{"kernel.apparmor_restrict_unprivileged_userns": "1"},
			[]string{"apt-get"},
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 && sudo apt-get install bubblewrap",
		},
		"no namespaces": {
			map[string]string{"user.max_user_namespaces": "0"},
			[]string{"bwrap"},
			"sudo sysctl -w user.max_user_namespaces=15000",
		},
		"Alpine":         {nil, []string{"apk"}, "sudo apk add bubblewrap"},
		"nothing to add": {nil, []string{"bwrap", "apt-get"}, ""},
		"unknown system": {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := mendCommand(func(name string) string { return tc.settings[name] }, func(program string) (string, error) {
				if slices.Contains(tc.programs, program) {
					return program, nil
				}
				return "", errors.New("not found")
			})
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
