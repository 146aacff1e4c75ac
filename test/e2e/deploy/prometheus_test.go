// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

var observeLong = flag.Bool("observe.long", false, "cause the incident of each alert, not only of some")

// TestPanelsHaveData has a real Prometheus scrape the system while it evaluates, is asked for what does not
// exist, and starts pods, and asks it each query of each dashboard. No alert may fire but in the incident that it
// is for. After the incidents, the panels about them have data too.
func TestPanelsHaveData(t *testing.T) {
	t.Parallel() // with other tests in their own namespaces
	ctx := suite.Context(t)
	at := aside("panels")
	at.installObserved(t)
	prometheus, began := at.prometheus(t), time.Now()
	guard, oncall := prometheus.guard(t), at.onCall(t)
	loaded, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		load(loaded, at.caller(t), inPod(t), guard.evaluated)
	}()
	defer func() { stop(); <-done }()
	at.coldStarts(ctx, func() { prometheus.awaitPanels(ctx, t, panelQueries(t, at.system, uneventful)) })
	prometheus.awaitTargets(ctx, t, at)
	prometheus.awaitPanels(ctx, t, recorded(t))
	if *observeLong {
		at.events(t)
	}
	for _, one := range incidents {
		if one.short || *observeLong {
			one.happens(t, at, prometheus, guard, oncall)
		}
	}
	if *observeLong {
		queries := panelQueries(t, at.system, slices.Collect(maps.Keys(rare)))
		prometheus.sawPanels(suite.Context(t), t, slices.Concat(queries, recorded(t)), began)
		prometheus.draw(suite.Context(t), t, at.system, began)
	}
}

// coldStarts deletes pods now and then while a task runs: the first cold start ends before Prometheus has seen its
// counters, and a counter that stays the same has no quantiles.
func (p place) coldStarts(ctx context.Context, do func()) {
	ctx, stop := context.WithCancel(ctx)
	var deleting sync.WaitGroup
	deleting.Go(func() {
		for ctx.Err() == nil {
			wait(ctx, 4*time.Second)
			p.killReady(ctx)
		}
	})
	defer func() { stop(); deleting.Wait() }()
	do()
}

// load has functions succeed, fail and not exist until ctx ends. It passes the duration of each evaluation in a pod to
// evaluated.
func load(ctx context.Context, conn *grpc.ClientConn, image string, evaluated func(time.Duration)) {
	client := evaluator.NewFunctionEvaluatorClient(conn)
	for n := 0; ctx.Err() == nil; n++ {
		wait(ctx, 200*time.Millisecond)
		begin := time.Now()
		_ = suite.SetNamespace(ctx, conn, image, grpc.WaitForReady(true))
		evaluated(time.Since(begin))
		_ = suite.SetNamespace(ctx, conn, setNamespace)
		if n%100 == 0 { // more often would be an alert
			_, _ = client.EvaluateFunction(ctx, &evaluator.EvaluateFunctionRequest{Image: image})
		}
	}
}

// prometheus is a running Prometheus.
type prometheus struct{ url string }

// series returns the number of series of a query's answer that have a number; it is zero while there is no answer.
func (p prometheus) series(ctx context.Context, t *testing.T, query string) int {
	t.Helper()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	p.get(ctx, t, "/api/v1/query?query="+url.QueryEscape(query), &answer)
	if answer.Error != "" {
		t.Fatalf("%s: %s", query, answer.Error)
	}
	n := 0
	for _, series := range answer.Data.Result {
		text, _ := series.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			n++
		}
	}
	return n
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
