// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// guard watches all the time that alerts fire only while they may.
type guard struct {
	prometheus prometheus
	mu         sync.Mutex
	now        string // what happens
	may        []string
	reported   map[string]bool
	slow       time.Time // when the load's last evaluation ended that FunctionRunnerEvaluationsSlow is about
}

// guard starts one, which ends with the test. No alert may fire at first.
func (p prometheus) guard(t *testing.T) *guard {
	t.Helper()
	g := &guard{prometheus: p, now: "a system that does its work", reported: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			g.check(ctx, t)
			wait(ctx, 500*time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return g
}

// during permits alerts for as long as something happens. Without -observe.long, those of earlier incidents have not
// ended.
func (g *guard) during(what string, may []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !*observeLong {
		may = slices.Concat(g.may, may)
	}
	g.now = what
	g.may = may
}

// check reports each alert that fires and may not, once for what happens.
func (g *guard) check(ctx context.Context, t *testing.T) {
	firing := g.prometheus.firing(ctx, t)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, alert := range firing {
		key := g.now + ": " + alert
		if !slices.Contains(g.may, alert) && !g.reported[key] && !g.isSlowness(ctx, t, alert) {
			g.reported[key] = true
			t.Errorf("%s: %s fires, and should not", g.now, alert)
		}
	}
}

// slowScrapes has an answer if programs took as long to answer a scrape as Prometheus waits here, which is a second.
// Of a program that does not run, or whose port is another one, scrapes fail sooner.
const slowScrapes = `max_over_time(scrape_duration_seconds{job="function-runner"}[1m]) > 0.9`

// isSlowness reports whether an alert is right because the machine has been slow within the last minute. Here, alerts
// are about seconds instead of minutes.
func (g *guard) isSlowness(ctx context.Context, t *testing.T, alert string) bool {
	switch alert {
	case "FunctionRunnerEvaluationsSlow":
		return time.Since(g.slow) < time.Minute
	case "FunctionRunnerProgramDown":
		return g.prometheus.series(ctx, t, slowScrapes) > 0
	}
	return false
}

// evaluated records how long an evaluation of the load took.
func (g *guard) evaluated(took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if took > 10*time.Second {
		g.slow = time.Now()
	}
}

// happens causes the incident until its alerts fire. With -observe.long, the on-call engineer looks for the cause, and
// when it is over, the alerts end.
func (i incident) happens(t *testing.T, at place, prometheus prometheus, guard *guard, oncall engineer) {
	t.Helper()
	guard.during(i.name, slices.Concat(i.alerts, i.also))
	ctx, end := context.WithCancel(t.Context())
	caused := make(chan struct{})
	go func() {
		defer close(caused)
		i.cause(ctx, t, at)
	}()
	over := sync.OnceFunc(func() { end(); <-caused })
	defer over()
	for _, alert := range i.alerts {
		began := time.Now()
		suite.Until(suite.Context(t), t, i.name+": "+alert+" fires", func() (bool, string) {
			firing := prometheus.firing(ctx, t)
			return slices.Contains(firing, alert), fmt.Sprintf("firing are %v", firing)
		})
		t.Logf("%s: %s fires after %v more", i.name, alert, time.Since(began).Round(time.Second))
	}
	if !*observeLong {
		return // the alerts end later
	}
	if i.look.page != "" {
		oncall.finds(t, prometheus, i.look)
	}
	over()
	began := time.Now()
	for range 2 { // windows are longer than one wait
		if prometheus.awaitSilence(t) {
			break
		}
	}
	if firing := prometheus.firing(t.Context(), t); len(firing) > 0 {
		t.Errorf("%s: %v do not end", i.name, firing)
	}
	t.Logf("%s: all alerts end after %v", i.name, time.Since(began).Round(time.Second))
	guard.during("after "+i.name, nil)
}

// awaitSilence waits until no alert fires, and reports whether that is so.
func (p prometheus) awaitSilence(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), suite.ConditionTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if len(p.firing(ctx, t)) == 0 && ctx.Err() == nil {
			return true
		}
		wait(ctx, 500*time.Millisecond)
	}
	return false
}
