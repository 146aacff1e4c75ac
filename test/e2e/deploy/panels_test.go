// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// uneventful are the metrics of events that a system without faults does not have: their counters have
// no series before the first one.
var uneventful = []string{
	"fn_retries_total", "fn_silent_replicas_total", "fn_takeovers_total", "fn_kube_watch_failures_total",
	"fn_kube_template_failures_total", "fn_lease_rejections_total", "fn_pod_evictions_total", "fn_stale_answers_total",
	"fn_resolver_tag_moves_total", "fn_pull_secret_writes_total", "fn_pull_secret_in_step",
	"fn_policy_", "fn_result_cache_", "fn_certificate_", "fn_issuer_",
	"fn_callers_", "fn_pods_certified",
	// On an idle node that has the images, these phases end before the next report.
	`phase="schedule"`, `phase="pull"`, `phase="start"`,
}

// panelQuery is a query of a dashboard.
type panelQuery struct{ panel, expr string }

// rare are the metrics of events that the test does not cause, with the reason.
var rare = map[string]string{
	"fn_kube_template_failures_total": "a broken template: its own test, TestPorchTemplate",
	"fn_stale_answers_total":          "an image-resolver that is away for a minute: TestStaleAnswersAreCounted",
	`phase="start"`:                   "a container that stays created: TestSpans of podeval",
	`phase="schedule"`:                "nodes that are full twice, as rates need: TestSpans has the phase",
}

// sawPanels reports the queries that Prometheus had no number for since a time.
func (p prometheus) sawPanels(ctx context.Context, t *testing.T, queries []panelQuery, since time.Time) {
	t.Helper()
	for _, q := range queries {
		lines, err := p.lines(ctx, t, q.expr, since, time.Now())
		if err != nil || len(lines) == 0 {
			t.Errorf("%s has no data (%v): %s", q.panel, err, q.expr)
		}
	}
}

// awaitPanels waits until each query has an answer.
func (p prometheus) awaitPanels(ctx context.Context, t *testing.T, queries []panelQuery) {
	t.Helper()
	if len(queries) == 0 {
		t.Fatal("no queries")
	}
	suite.Until(ctx, t, "each panel has data", func() (bool, string) {
		queries = slices.DeleteFunc(queries, func(q panelQuery) bool { return p.series(ctx, t, q.expr) > 0 })
		return len(queries) == 0, fmt.Sprintf("no data yet: %q", queries)
	})
}

// recordName finds the names of recording rules.
var recordName = regexp.MustCompile(`(?m)^ +- record: (.+)$`)

// alertName finds the names of alerts.
var alertName = regexp.MustCompile(`(?m)^ +- alert: (.+)$`)

// TestEachAlertHasAnIncident compares the incidents with the alerts.
func TestEachAlertHasAnIncident(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "deploy/observability/prometheus/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, match := range alertName.FindAllStringSubmatch(string(content), -1) {
		want = append(want, match[1])
	}
	for _, one := range incidents {
		got = append(got, one.alerts...)
	}
	slices.Sort(want)
	slices.Sort(got)
	got = slices.Compact(got) // an alert may have several incidents
	if !slices.Equal(got, want) {
		t.Errorf("incidents are for the alerts %v, and there are %v", got, want)
	}
}

// recorded returns the names of the recording rules as queries.
func recorded(t *testing.T) (queries []panelQuery) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "deploy/observability/prometheus/rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range recordName.FindAllStringSubmatch(string(content), -1) {
		queries = append(queries, panelQuery{"rules.yaml", match[1]})
	}
	return queries
}

// panelQueries returns the queries of all dashboards, for one namespace, without those about events that
// do not happen.
func panelQueries(t *testing.T, namespace string, without []string) []panelQuery {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/observability/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	// Incidents were minutes ago.
	fill := strings.NewReplacer("$namespace", namespace, "$function", ".*", "$__rate_interval", "5m")
	var queries []panelQuery
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		type panel struct {
			Title   string
			Targets []struct {
				Expr       string
				Datasource struct{ Type string }
			}
			Panels []panel // of a row
		}
		var dashboard panel
		if err := json.Unmarshal(content, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, row := range dashboard.Panels {
			dashboard.Panels = append(dashboard.Panels, row.Panels...)
		}
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				left := slices.ContainsFunc(without, func(m string) bool { return strings.Contains(target.Expr, m) })
				if !left && target.Datasource.Type == "prometheus" {
					queries = append(queries, panelQuery{filepath.Base(file) + ": " + p.Title, fill.Replace(target.Expr)})
				}
			}
		}
	}
	return queries
}
