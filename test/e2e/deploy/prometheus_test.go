// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// uneventful are the metrics of events that a system without faults does not have: their counters have
// no series before the first one.
var uneventful = []string{
	"fn_retries_total", "fn_silent_replicas_total", "fn_takeovers_total", "fn_kube_watch_failures_total",
	"fn_kube_template_failures_total", "fn_lease_rejections_total", "fn_pod_evictions_total", "fn_stale_answers_total",
	"fn_resolver_tag_moves_total", "fn_pull_secret_writes_total", "fn_pull_secret_in_step",
	// On an idle node, these phases end before the next report.
	`phase="schedule"`, `phase="start"`,
}

// panelQuery is a query of a dashboard.
type panelQuery struct{ panel, expr string }

// TestPanelsHaveData has a real Prometheus scrape the system while it evaluates, is asked for what does not
// exist, and starts pods, and asks it each query of each dashboard. No alert may fire until a registry and
// a program are gone.
func TestPanelsHaveData(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	ctx := suite.Context(t)
	at := aside("panels")
	at.install(t, s.OnTheBed(t, suite.Build(t, filepath.Join(root, "deploy/base/microservices"))))
	prometheus := at.prometheus(t)
	loaded, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		load(loaded, at.caller(t), inPod(t))
	}()
	defer func() { stop(); <-done }()
	queries := panelQueries(t, at.system)
	suite.Until(ctx, t, "each panel has data", func() (bool, string) {
		queries = slices.DeleteFunc(queries, func(q panelQuery) bool {
			return prometheus.series(ctx, t, q.expr) > 0
		})
		return len(queries) == 0, fmt.Sprintf("no data yet: %q", queries)
	})
	for _, alert := range prometheus.firing(ctx, t) {
		t.Errorf("the alert %s fires for a system that does its work", alert)
	}
	gone := evaluator.NewFunctionEvaluatorClient(at.caller(t))
	prometheus.awaitAlert(ctx, t, "RegistryFails", func(n int) {
		request := &evaluator.EvaluateFunctionRequest{
			Image: fmt.Sprintf("%s/none/fn%d:v1", noRegistry, n), ResourceList: []byte(suite.List),
		}
		_, _ = gone.EvaluateFunction(ctx, request)
	})
	prometheus.awaitAlert(ctx, t, "ProgramIsDown", func(n int) {
		if n > 0 {
			return
		}
		err := s.Client.CoreV1().Pods(at.system).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: "app=pod-manager"})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// noRegistry is an address of the node without a registry.
const noRegistry = "172.30.0.1:5999"

// awaitAlert calls cause again and again until the alert fires.
func (p prometheus) awaitAlert(ctx context.Context, t *testing.T, alert string, cause func(n int)) {
	t.Helper()
	n := 0
	suite.Until(ctx, t, alert+" fires", func() (bool, string) {
		cause(n)
		n++
		firing := p.firing(ctx, t)
		return slices.Contains(firing, alert), fmt.Sprintf("firing are %v", firing)
	})
}

// load has functions succeed, fail and not exist until ctx ends.
func load(ctx context.Context, conn *grpc.ClientConn, image string) {
	client := evaluator.NewFunctionEvaluatorClient(conn)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		<-ticker.C
		_ = suite.SetNamespace(ctx, conn, image, grpc.WaitForReady(true))
		_ = suite.SetNamespace(ctx, conn, setNamespace)
		if n%100 == 0 { // more often would be an alert
			_, _ = client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image})
		}
	}
}

// panelQueries returns the queries of all dashboards, for one namespace, without those about events that
// do not happen.
func panelQueries(t *testing.T, namespace string) []panelQuery {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "deploy/observability/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	fill := strings.NewReplacer("$namespace", namespace, "$function", ".*", "$__rate_interval", "30s")
	var queries []panelQuery
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(content, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				if !slices.ContainsFunc(uneventful, func(m string) bool { return strings.Contains(target.Expr, m) }) {
					queries = append(queries, panelQuery{filepath.Base(file) + ": " + p.Title, fill.Replace(target.Expr)})
				}
			}
		}
	}
	return queries
}

// prometheus is a running Prometheus.
type prometheus struct{ url string }

// duration is how long an alert's condition has to hold.
var duration = regexp.MustCompile(`(?m)^( +for: ).*`)

// prometheus starts one that scrapes the pods of the place each second, with our rules. Conditions of
// alerts have to hold for a few seconds.
func (p place) prometheus(t *testing.T) prometheus {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"rules.yaml", "alerts.yaml"} {
		content, err := os.ReadFile(filepath.Join(root, "deploy/observability/prometheus", name))
		if err != nil {
			t.Fatal(err)
		}
		soon := duration.ReplaceAll(content, []byte("${1}5s"))
		if err := os.WriteFile(filepath.Join(dir, name), soon, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{filepath.Join(dir, "rules.yaml"), filepath.Join(dir, "alerts.yaml")},
		"scrape_configs": []any{
			map[string]any{"job_name": "function-runner", "static_configs": p.targets(t)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	const address = "127.0.0.1:19090"
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "prometheus", "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn", "--enable-feature=exemplar-storage")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = cmd.Wait() })
	return prometheus{"http://" + address}
}

// targets returns the pods of the place, with the labels that scrape.yaml gives them.
func (p place) targets(t *testing.T) []any {
	t.Helper()
	pods, err := s.Client.CoreV1().Pods(p.system).List(suite.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var targets []any
	for i := range pods.Items {
		pod := &pods.Items[i]
		targets = append(targets, map[string]any{
			"targets": []string{pod.Status.PodIP + ":9464"},
			"labels":  map[string]string{"namespace": p.system, "pod": pod.Name, "app": pod.Labels["app"]},
		})
	}
	return targets
}

// series returns the number of series of a query's answer; it is zero while there is no answer.
func (p prometheus) series(ctx context.Context, t *testing.T, query string) int {
	t.Helper()
	var answer struct {
		Error string
		Data  struct{ Result []any }
	}
	p.get(ctx, t, "/api/v1/query?query="+url.QueryEscape(query), &answer)
	if answer.Error != "" {
		t.Fatalf("%s: %s", query, answer.Error)
	}
	return len(answer.Data.Result)
}

// firing returns the alerts that fire.
func (p prometheus) firing(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	p.get(ctx, t, "/api/v1/alerts", &answer)
	for _, alert := range answer.Data.Alerts {
		if alert.State == "firing" {
			names = append(names, alert.Labels["alertname"])
		}
	}
	return names
}

// get decodes an answer of the API into answer, which stays as it is while Prometheus does not answer.
func (p prometheus) get(ctx context.Context, t *testing.T, path string, answer any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return // it has not started yet
	}
	defer func() { _ = resp.Body.Close() }()
	_ = json.NewDecoder(resp.Body).Decode(answer)
}
