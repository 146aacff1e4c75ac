// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/test/internal/manifests"
)

// others are metrics of libraries.
var others = map[string]string{
	"rpc_server_call_duration_seconds": "Histogram",
	"go_goroutines":                    "Gauge", "process_cpu_seconds_total": "Counter",
	"process_resident_memory_bytes": "Gauge", "up": "Gauge",
}

// known reports whether a program, Prometheus or a recording rule has the series.
func known(t *testing.T, series string) bool {
	t.Helper()
	if records, _ := rules(t); slices.ContainsFunc(records, func(r rule) bool { return r.Record == series }) {
		return true
	}
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

// grafana is what the tests read of a dashboard.
type grafana struct {
	UID, Title    string
	SchemaVersion int
	Time          struct{ From, To string }
	Templating    struct{ List []struct{ Name, Type string } }
	Panels        []grafanaPanel
}

type grafanaPanel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ Type, UID string }
	Targets                  []struct{ RefID, Expr, Query, Tags string }
	Links                    []struct{ URL string }
	Panels                   []grafanaPanel // of a row
}

// has reports whether a data source is one of the variables.
func (g grafana) has(datasource string) bool {
	for _, variable := range g.Templating.List {
		if variable.Type == "datasource" && datasource == "${"+variable.Name+"}" {
			return true
		}
	}
	return false
}

// boards returns the dashboards by the names of their files.
func boards(t *testing.T) map[string]grafana {
	t.Helper()
	all := map[string]grafana{}
	for name, content := range read(t, "observability/dashboards/*.json") {
		var board grafana
		if err := json.Unmarshal(content, &board); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i := 0; i < len(board.Panels); i++ {
			if row := board.Panels[i]; row.Type == "row" {
				board.Panels = slices.Replace(board.Panels, i, i+1, row.Panels...)
			}
		}
		all[name] = board
	}
	return all
}

// TestDashboards checks what Grafana's schema requires, and each query.
func TestDashboards(t *testing.T) {
	for name, board := range boards(t) {
		if board.UID == "" || board.Title == "" || board.SchemaVersion < 36 || board.Time.From == "" ||
			len(board.Panels) == 0 || len(board.Templating.List) < 2 {
			t.Errorf("%s is no dashboard: %+v", name, board)
		}
		content := string(mustRead(t, filepath.Join(deploy, "observability/dashboards", name)))
		for _, v := range board.Templating.List {
			if !strings.Contains(content, "$"+v.Name) && !strings.Contains(content, "${"+v.Name+"}") {
				t.Errorf("%s has the choice %s, which no query uses", name, v.Name)
			}
		}
		ids := map[int]bool{}
		for _, p := range board.Panels {
			where := name + ": " + p.Title
			if ids[p.ID] || p.ID == 0 || p.Type == "" || p.Title == "" || p.Description == "" || len(p.Targets) == 0 ||
				!board.has(p.Datasource.UID) || p.GridPos.W == 0 || p.GridPos.H == 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s lacks a field: %+v", where, p)
			}
			ids[p.ID] = true
			for _, link := range p.Links {
				if _, page, ok := strings.Cut(link.URL, "/docs/runbooks/"); ok {
					mustRead(t, filepath.Join(root, "docs/runbooks", page))
				}
			}
			for _, target := range p.Targets {
				if p.Datasource.Type == "prometheus" {
					checkExpression(t, where, target.Expr)
				}
				// Jaeger knows no patterns.
				query := target.Expr + target.Query
				if !strings.Contains(query, `=~"$namespace"`) &&
					!strings.HasPrefix(target.Tags, "$tags") {
					t.Errorf("%s does not select the namespace: %+v", where, target)
				}
			}
		}
	}
}

// ruleFile is a file of Prometheus' rules.
type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// rules returns the recording rules and the alerts.
func rules(t *testing.T) (records, alerts []rule) {
	t.Helper()
	for _, name := range []string{"rules.yaml", "alerts.yaml"} {
		var file ruleFile
		content := mustRead(t, filepath.Join(root, "deploy/observability/prometheus", name))
		if err := yaml.UnmarshalStrict(content, &file); err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Groups {
			for _, r := range group.Rules {
				if r.Record != "" {
					records = append(records, r)
				} else {
					alerts = append(alerts, r)
				}
			}
		}
	}
	return records, alerts
}

// TestAlerts checks that each alert says enough, and that its page exists and has what a page needs.
func TestAlerts(t *testing.T) {
	records, alerts := rules(t)
	if len(records) == 0 || len(alerts) == 0 {
		t.Fatalf("%d recording rules and %d alerts", len(records), len(alerts))
	}
	for _, r := range records {
		checkExpression(t, r.Record, r.Expr)
	}
	index := string(mustRead(t, filepath.Join(root, "docs/runbooks/README.md")))
	for _, r := range alerts {
		checkExpression(t, r.Alert, r.Expr)
		if !strings.Contains(index, "("+r.Alert+".md)") {
			t.Errorf("docs/runbooks/README.md has no row for %s", r.Alert)
		}
		if !strings.HasPrefix(r.Alert, "FunctionRunner") || r.For == "" || r.Annotations["dashboard_url"] == "" ||
			r.Labels["severity"] == "" || r.Annotations["summary"] == "" ||
			r.Annotations["description"] == "" {
			t.Errorf("%s says too little: %+v", r.Alert, r)
		}
		if !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbooks/"+r.Alert+".md") {
			t.Errorf("%s has the page %q", r.Alert, r.Annotations["runbook_url"])
		}
		page := string(mustRead(t, filepath.Join(root, "docs/runbooks", r.Alert+".md")))
		for _, part := range []string{
			"# " + r.Alert + "\n\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## Mitigation\n",
		} {
			if !strings.Contains(page, part) {
				t.Errorf("docs/runbooks/%s.md lacks %q", r.Alert, part)
			}
		}
	}
}

// TestRunbooksNamePanelsThatExist compares the pages with the dashboards.
func TestRunbooksNamePanelsThatExist(t *testing.T) {
	titles := map[string]bool{}
	for _, board := range boards(t) {
		titles[strings.TrimPrefix(board.Title, "Function Runner: ")] = true
		for _, p := range board.Panels {
			titles[p.Title] = true
		}
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, page := range pages {
		for _, match := range regexp.MustCompile(`\*([A-Z][^*]+)\*|dashboard \*([^*]+)\*`).FindAllStringSubmatch(
			string(mustRead(t, page)), -1) {
			if title := match[1] + match[2]; !titles[title] {
				t.Errorf("%s names %q, which is no panel or dashboard", filepath.Base(page), title)
			}
		}
	}
}

// TestOperatorScrapesOurPods compares the selectors of Prometheus' operator with the pods of the bases.
func TestOperatorScrapesOurPods(t *testing.T) {
	objects, err := manifests.Build(filepath.Join(root, "deploy", manifests.Operator))
	if err != nil {
		t.Fatal(err)
	}
	selected := map[string]bool{}
	kinds := map[string]int{}
	for _, content := range objects {
		var object struct {
			Kind string
			Spec struct {
				Selector struct {
					MatchExpressions []struct{ Values []string }
				}
			}
		}
		if err := yaml.Unmarshal(content, &object); err != nil {
			t.Fatal(err)
		}
		kinds[object.Kind]++
		for _, expression := range object.Spec.Selector.MatchExpressions {
			for _, app := range expression.Values {
				selected[app] = true
			}
		}
	}
	if kinds["PodMonitor"] != 2 || kinds["PrometheusRule"] != 1 {
		t.Errorf("objects %v, want two PodMonitors and the rules", kinds)
	}
	for _, app := range []string{"gateway", "pod-manager", "image-resolver", "function-runner"} {
		if !selected[app] {
			t.Errorf("no PodMonitor selects the pods of %s", app)
		}
	}
}

// TestEachMetricIsShown finds metrics that are on no panel and in no alert.
func TestEachMetricIsShown(t *testing.T) {
	kinds, err := exported()
	if err != nil {
		t.Fatal(err)
	}
	var queries strings.Builder
	for _, board := range boards(t) {
		for _, p := range board.Panels {
			for _, target := range p.Targets {
				queries.WriteString(target.Expr + "\n")
			}
		}
	}
	records, alerts := rules(t)
	for _, r := range slices.Concat(records, alerts) {
		queries.WriteString(r.Expr + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if !strings.Contains(queries.String(), name) {
			t.Errorf("%s is on no panel and in no alert", name)
		}
	}
}
