// SPDX-License-Identifier: Apache-2.0

//go:build promtool

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// promtool runs Prometheus' own tool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestPrometheusAcceptsTheRules checks the rules, and runs the alerts' unit tests.
func TestPrometheusAcceptsTheRules(t *testing.T) {
	rules := filepath.Join(dir, "prometheus")
	promtool(t, "check", "rules", filepath.Join(rules, "rules.yaml"), filepath.Join(rules, "alerts.yaml"))
	promtool(t, "test", "rules", filepath.Join(rules, "alerts_test.yaml"))
}

// TestPrometheusAcceptsThePanels has Prometheus parse each query of a panel as a rule.
func TestPrometheusAcceptsThePanels(t *testing.T) {
	var rules []object
	for name, b := range dashboards {
		panels := b.panels
		for _, r := range b.rows {
			panels = append(panels, r.panels...)
		}
		for _, s := range b.stats {
			panels = append(panels, panel{s.title, s.description, s.unit, s.queries})
		}
		for i, p := range panels {
			for j, q := range p.queries {
				expr := strings.ReplaceAll(selected(q.expr), "$__rate_interval", "5m")
				record := fmt.Sprintf("%s:%d:%d", strings.ReplaceAll(name, "-", "_"), i, j)
				rules = append(rules, object{"record": record, "expr": expr})
			}
		}
	}
	content, err := yaml.Marshal(object{"groups": []object{{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// TestEachAlertHasTwoScenarios finds alerts that no unit test fires, or that none keeps silent.
func TestEachAlertHasTwoScenarios(t *testing.T) {
	var alerts, tests struct {
		Groups []struct{ Rules []struct{ Alert string } }
		Tests  []struct {
			Rules []struct {
				Name   string `json:"alertname"`
				Alerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	for name, into := range map[string]any{"alerts.yaml": &alerts, "alerts_test.yaml": &tests} {
		content, err := os.ReadFile(filepath.Join(dir, "prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(content, into); err != nil {
			t.Fatal(err)
		}
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, r := range test.Rules {
			if len(r.Alerts) > 0 {
				fires[r.Name] = true
			} else {
				silent[r.Name] = true
			}
		}
	}
	for _, group := range alerts.Groups {
		for _, r := range group.Rules {
			if !fires[r.Alert] || !silent[r.Alert] {
				t.Errorf("%s fires in a test: %t, and stays silent in one: %t", r.Alert, fires[r.Alert], silent[r.Alert])
			}
		}
	}
}
