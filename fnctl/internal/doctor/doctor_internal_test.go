// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/runner"
)

// TestReportOfLaunchers has machines where the first launcher works, and where only the last one works.
func TestReportOfLaunchers(t *testing.T) {
	for name, tc := range map[string]struct {
		tried      []runner.Launcher
		mend, want string
	}{
		"sandboxes": {
			[]runner.Launcher{{Name: "bubblewrap"}}, "", "--local   ✓ sandboxes by bubblewrap\nregistry",
		},
		"direct": {
			[]runner.Launcher{{Name: "crun", Problem: "no namespaces"}, {Name: "direct"}},
			"apk add bubblewrap",
			"--local   ✓ static executables without namespaces, confined by Landlock and seccomp (launcher direct)\n" +
				"            not by crun: no namespaces\n            to mend it: apk add bubblewrap\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var d diagnosis
			d.Local.Tried = tc.tried
			d.Local.Launcher = tc.tried[len(tc.tried)-1].Name
			d.Local.Mend = tc.mend
			var out strings.Builder
			d.printReport(command.Environment{Stdout: &out}, false)
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("it reports\n%swant\n%s", out.String(), tc.want)
			}
		})
	}
}

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
