// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"sigs.k8s.io/yaml"
)

// others are metrics of libraries.
var others = map[string]string{
	"rpc_server_duration_milliseconds": "Histogram",
	"go_goroutines":                    "Gauge", "process_cpu_seconds_total": "Counter",
	"process_resident_memory_bytes": "Gauge",
}

// known reports whether a program reports the series.
func known(t *testing.T, series string) bool {
	t.Helper()
	kinds, err := exported()
	if err != nil {
		t.Fatal(err)
	}
	for _, kinds := range []map[string]string{kinds, others} {
		if name := base(kinds, series); kinds[name] != "" && (kinds[name] != "Histogram" || name != series) {
			return true
		}
	}
	return false
}

// checkExpression parses a query and finds metrics that no program reports.
func checkExpression(t *testing.T, where, query string) {
	t.Helper()
	// Grafana fills in the interval.
	expression, err := metricsql.Parse(strings.ReplaceAll(query, "$__rate_interval", "5m"))
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	used := map[string]bool{}
	metricsql.VisitAll(expression, func(e metricsql.Expr) {
		if m, ok := e.(*metricsql.MetricExpr); ok {
			for _, filters := range m.LabelFilterss {
				used[filters[0].Value] = true
			}
		}
	})
	if len(used) == 0 {
		t.Errorf("%s uses no metric: %s", where, query)
	}
	for _, metric := range slices.Sorted(maps.Keys(used)) {
		if !known(t, metric) {
			t.Errorf("%s uses %s, which no program reports", where, metric)
		}
	}
	checkOutcomes(t, where, expression)
	if _, err := eachReplica(expression); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

func read(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "deploy", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s matches nothing (%v)", pattern, err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestDashboards(t *testing.T) {
	type panel struct {
		Title   string
		Targets []struct{ Expr string }
	}
	for name, content := range read(t, "dashboards/*.json") {
		var dashboard struct {
			UID, Title string
			Panels     []panel
		}
		if err := json.Unmarshal(content, &dashboard); err != nil || dashboard.UID == "" || len(dashboard.Panels) == 0 {
			t.Fatalf("%s is no dashboard: %v", name, err)
		}
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				checkExpression(t, name+": "+p.Title, target.Expr)
			}
		}
	}
}

func TestAlerts(t *testing.T) {
	type rule struct {
		Alert, Expr, For    string
		Labels, Annotations map[string]string
	}
	for name, content := range read(t, "alerts/*.yaml") {
		var rules struct {
			Groups []struct {
				Name  string
				Rules []rule
			}
		}
		if err := yaml.UnmarshalStrict(content, &rules); err != nil {
			t.Fatal(err)
		}
		if len(rules.Groups) == 0 {
			t.Errorf("%s has no rules", name)
		}
		for _, g := range rules.Groups {
			for _, r := range g.Rules {
				checkExpression(t, name+": "+r.Alert, r.Expr)
				if r.Alert == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" ||
					r.Annotations["description"] == "" {
					t.Errorf("%s: %s says too little: %+v", name, r.Alert, r)
				}
			}
		}
	}
}
