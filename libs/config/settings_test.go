// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/kelseyhightower/envconfig"

	"github.com/krm-function-runner/function-runner/libs/config"
)

// Embedded is the settings that several programs have.
type Embedded struct {
	HostUsers bool `split_words:"true"`
}

// everything has a setting of each kind.
type everything struct {
	Port         int           `default:"9445"`
	MaxGRPCRetry float64       `split_words:"true"`
	MaxBytes     config.Bytes  `split_words:"true" default:"6291456"`
	TTL          time.Duration `default:"30m"`
	Registries   []string      `split_words:"true"`
	WrapperImage string        `split_words:"true" envconfig:"WRAPPER_IMAGE"`
	PodManager   part          `split_words:"true"`
	Internal     string        `ignored:"true"`
	Embedded
}

func TestSettings(t *testing.T) {
	got := config.Settings(new(everything))
	want := []config.Setting{
		{Variable: "FNR_PORT", Type: "number", Default: "9445"},
		{Variable: "FNR_MAX_GRPC_RETRY", Type: "number"},
		{Variable: "FNR_MAX_BYTES", Type: "bytes", Default: "6291456"},
		{Variable: "FNR_TTL", Type: "duration", Default: "30m"},
		{Variable: "FNR_REGISTRIES", Type: "list, by commas"},
		{Variable: "FNR_WRAPPER_IMAGE", Alias: "WRAPPER_IMAGE", Type: "text"},
		{Variable: "FNR_POD_MANAGER_DRAIN_DELAY", Type: "duration", Default: "5s"},
		{Variable: "FNR_HOST_USERS", Type: "true or false", Default: "false"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}

// TestSettingsAreThoseOfEnvconfig checks that the list has what is read, and nothing else.
func TestSettingsAreThoseOfEnvconfig(t *testing.T) {
	var listed []string
	for _, s := range config.Settings(new(everything)) {
		listed = append(listed, s.Variable)
	}
	var read strings.Builder
	if err := envconfig.Usagef(config.Prefix, new(everything), &read, "{{range .}}{{usage_key .}}\n{{end}}"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(read.String()), listed); diff != "" {
		t.Errorf("(-read, +listed):\n%s", diff)
	}
}

func TestHelp(t *testing.T) {
	var help strings.Builder
	config.Help(&help, new(everything))
	for _, want := range []string{"\n  FNR_PORT number\n      (default 9445)\n", "\n  WRAPPER_IMAGE text\n"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &help)
		}
	}
}

// TestUnknownVariables checks what the error says about a variable that is not a setting.
func TestUnknownVariables(t *testing.T) {
	tests := map[string]struct {
		reason, variable, want string
	}{
		"letters":         {"a typing error", "FNR_PROT", "is FNR_PORT meant?"},
		"another meaning": {"words in common are no typing error", "FNR_HOST_PORTS", "remove it"},
		"other":           {"a guess would mislead", "FNR_TEMPERATURE_OF_SEA", "remove it"},
		"short":           {"letters in common are no typing error", "FNR_CPU", "remove it"},
		"likely guess":    {"another name of the same setting", "FNR_POD_TTL", "is FNR_TTL meant?"},
		"no such setting": {"the program has no FNR_ADDRESS", "FNR_LISTEN_ADDRESS", "remove it"},
		"test bed":        {"it is for tests, in whose environment programs run", "FNR_BED", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tc.variable, "1")
			err := config.Fill(new(everything))
			if tc.want == "" {
				if err != nil {
					t.Errorf("got %v, want none: %s", err, tc.reason)
				}
				return
			}
			if text := fmt.Sprint(err); !strings.Contains(text, tc.variable+" is not a setting") ||
				!strings.Contains(text, tc.want) {
				t.Errorf("got %v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// TestSharedSettingsAreListedOnce embeds two structs that have a variable in common.
func TestSharedSettingsAreListedOnce(t *testing.T) {
	type Other struct {
		HostUsers bool `split_words:"true" default:"true"`
	}
	var both struct {
		Embedded
		Other
	}
	want := []config.Setting{{Variable: "FNR_HOST_USERS", Type: "true or false", Default: "false"}}
	if diff := cmp.Diff(want, config.Settings(&both)); diff != "" {
		t.Errorf("(-want, +got):\n%s", diff)
	}
}
