// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/config"
)

type part struct {
	DrainDelay time.Duration `split_words:"true" default:"5s"`
}

func (p part) Validate() error {
	var c config.Checks
	c.That(p.DrainDelay >= 0, "DrainDelay", p.DrainDelay, "zero or more")
	return c.Err()
}

type sample struct {
	Port  int    `default:"9445"`
	Name  string `default:"x"`
	Fast  bool
	Size  config.Bytes
	Serve part
}

func (s *sample) Validate() error {
	var c config.Checks
	c.That(s.Port > 0, "Port", s.Port, "a port from 1 to 65535")
	c.That(s.Name != "", "Name", s.Name, "a name")
	c.Within("Serve", s.Serve.Validate())
	return c.Err()
}

func TestLoad(t *testing.T) {
	tests := map[string]struct {
		reason string
		env    map[string]string
		errs   []string
	}{
		"defaults": {reason: "nothing has to be set"},
		"set":      {reason: "values are read with their type", env: map[string]string{"FNR_SERVE_DRAIN_DELAY": "7s"}},
		"not typed": {
			"a wrong type is named with its value",
			map[string]string{"FNR_SERVE_DRAIN_DELAY": "soon"},
			[]string{`FNR_SERVE_DRAIN_DELAY is "soon": it must be a duration such as 30s`},
		},
		"unknown": {"a typing error must not be ignored", map[string]string{"FNR_PROT": "1"}, []string{"FNR_PROT"}},
		"not allowed": {
			"all problems are named at once, with variable, value and what is allowed",
			map[string]string{"FNR_PORT": "-1", "FNR_NAME": "", "FNR_SERVE_DRAIN_DELAY": "-1s"},
			[]string{"FNR_PORT is -1: it must be a port", `FNR_NAME is ""`, "FNR_SERVE_DRAIN_DELAY is -1s"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			var cfg sample
			err := config.Load(&cfg)
			if (err != nil) != (len(tc.errs) > 0) {
				t.Fatalf("Load() = %v, want error %v: %s", err, len(tc.errs) > 0, tc.reason)
			}
			for _, want := range tc.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not name %q: %s", err, want, tc.reason)
				}
			}
		})
	}
}

// TestListsMayContainSpaces checks that spaces around items and empty items have no effect.
func TestListsMayContainSpaces(t *testing.T) {
	t.Setenv("FNR_REGISTRIES", " a.example, b.example,,")
	t.Setenv("FNR_NESTED_ITEMS", "c ,d e")
	var cfg struct {
		Registries []string
		Nested     struct{ Items []string }
	}
	if err := config.Fill(&cfg); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cfg.Registries, []string{"a.example", "b.example"}) ||
		!slices.Equal(cfg.Nested.Items, []string{"c", "d e"}) {
		t.Errorf("read %q", cfg)
	}
}

// TestListsContainItems checks that a list without items is an error unless it is empty, because an empty list of
// allowed images permits all.
func TestListsContainItems(t *testing.T) {
	for value, want := range map[string]string{
		"": "<nil>", "a": "<nil>", ",": `FNR_POLICY_ALLOW is ","`, " , ,": `FNR_POLICY_ALLOW is " , ,"`,
		" ": `FNR_POLICY_ALLOW is " "`,
	} {
		t.Setenv("FNR_POLICY_ALLOW", value)
		var cfg struct{ Policy struct{ Allow []string } }
		if err := config.Fill(&cfg); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("Fill with %q = %v, want %s", value, err, want)
		}
	}
}

// TestErrorsHaveNoGoTypes checks that errors describe the permitted values without the words of Go's parsers.
func TestErrorsHaveNoGoTypes(t *testing.T) {
	for assignment, want := range map[string]string{
		"FNR_PORT=6Mi":                 `FNR_PORT is "6Mi": it must be a whole number`,
		"FNR_PORT=9999999999999999999": `FNR_PORT is "9999999999999999999": it must be a whole number`,
		"FNR_FAST=maybe":               `FNR_FAST is "maybe": it must be true or false`,
		"FNR_SIZE=6M":                  `FNR_SIZE is "6M": it must be a number of bytes, or a size such as 6Mi`,
		"FNR_SERVE_DRAIN_DELAY=30":     `FNR_SERVE_DRAIN_DELAY is "30": it must be a duration such as 30s`,
	} {
		t.Run(assignment, func(t *testing.T) {
			variable, value, _ := strings.Cut(assignment, "=")
			t.Setenv(variable, value)
			if err := config.Fill(new(sample)); fmt.Sprint(err) != "environment: "+want {
				t.Errorf("Fill = %v, want %q", err, want)
			}
		})
	}
}

func TestVariable(t *testing.T) {
	for field, want := range map[string]string{
		"Port": "FNR_PORT", "Serve.DrainDelay": "FNR_SERVE_DRAIN_DELAY", "PodTTL": "FNR_POD_TTL",
		"MaxGRPCRetries": "FNR_MAX_GRPC_RETRIES",
	} {
		if got := config.Variable(field); got != want {
			t.Errorf("Variable(%q) = %q, want %q", field, got, want)
		}
	}
}
