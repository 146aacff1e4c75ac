// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"slices"
	"testing"

	"github.com/krm-function-runner/function-runner/fnctl/internal/command"
	"github.com/krm-function-runner/function-runner/fnctl/internal/local"
)

// TestContainersOfSystems checks where --local uses containers by default, and by which runtimes.
func TestContainersOfSystems(t *testing.T) {
	for name, tc := range map[string]struct {
		system, environment string
		want                []string
	}{
		"Linux":             {"linux", "KPT_FN_RUNTIME=podman", nil},
		"Linux, by setting": {"linux", "FNR_SANDBOX=docker", []string{"docker"}},
		"macOS":             {"darwin", "", local.ContainerRuntimes},
		"macOS, for kpt":    {"darwin", "KPT_FN_RUNTIME=Podman", []string{"podman"}},
		"Windows":           {"windows", "", local.ContainerRuntimes},
	} {
		t.Run(name, func(t *testing.T) {
			got := ContainerNames(tc.system, command.Environment{Environ: []string{tc.environment}})
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAdviceWithoutAnAddress checks what users read where no gateway answers.
func TestAdviceWithoutAnAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, environment, flag, want string
	}{
		"none":        {"they may not know that one is needed", "", DefaultAddress, noGateway},
		"environment": {"they have one, which is down", DefaultAddress, DefaultAddress, ""},
		"flag":        {"they have one, which is down", "", "gateway.example:9445", ""},
	} {
		t.Run(name, func(t *testing.T) {
			flags := Flags{Address: tc.flag}
			got, err := flags.clientConfig(command.Environment{Environ: []string{"FNCTL_ADDRESS=" + tc.environment}})
			if err != nil || got.Unreachable != tc.want {
				t.Errorf("advice %q, error %v, want %q: %s", got.Unreachable, err, tc.want, tc.reason)
			}
		})
	}
}
