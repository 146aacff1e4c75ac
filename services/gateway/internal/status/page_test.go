// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalhistory"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evalmetrics"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/status"
)

// poolsFunc lists pools.
type poolsFunc func() ([]*podmanagerv1.Pool, error)

func (f poolsFunc) ListPools(
	context.Context, *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	pools, err := f()
	return &podmanagerv1.ListPoolsResponse{Pools: pools}, err
}

// problems lists no pools, but problems of the pod-manager.
type problems []string

func (p problems) ListPools(
	context.Context, *podmanagerv1.ListPoolsRequest,
) (*podmanagerv1.ListPoolsResponse, error) {
	return &podmanagerv1.ListPoolsResponse{Problems: p}, nil
}

// active is what evaluations wait for that have not ended.
type active []evalmetrics.Waiting

func (active) Counts() map[string]int32            { return map[string]int32{"run": 2, "queue": 1} }
func (a active) Waiting(int) []evalmetrics.Waiting { return a }

// none returns no warnings and no images.
func none() []string { return nil }

// handler returns the page with a history and pools.
func handler(h *evalhistory.History, pools status.Pools, waiting ...evalmetrics.Waiting) http.Handler {
	return status.New(h, active(waiting), "gateway-0", none, none).Page(pools, slog.New(slog.DiscardHandler))
}

// get returns what the handler answers.
func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request(t, http.MethodGet, target))
	return answer
}

// request returns a browser's request.
func request(t *testing.T, method, target string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	r.Host = "localhost:9447"
	return r
}

// TestOnlyOwnHostNamesAreServed has a web site that gives its name the address of the page.
func TestOnlyOwnHostNamesAreServed(t *testing.T) {
	service := status.New(evaluated(), active(nil), "gateway-0", none, none)
	h := service.Page(nil, slog.New(slog.DiscardHandler), "Status.example.com")
	for host, want := range map[string]int{
		"localhost:9447": http.StatusOK, "LOCALHOST": http.StatusOK, "fnr.localhost:9447": http.StatusOK,
		"127.0.0.1:9447": http.StatusOK, "10.1.2.3": http.StatusOK, "[::1]:9447": http.StatusOK, "[fd00::1]": http.StatusOK,
		"status.example.com": http.StatusOK, "status.example.com.:443": http.StatusOK,
		"attacker.example:9447": http.StatusForbidden, "localhost.attacker.example": http.StatusForbidden,
		"127.0.0.1.attacker.example:9447": http.StatusForbidden, "notlocalhost": http.StatusForbidden,
		"x.status.example.com": http.StatusForbidden, "": http.StatusForbidden,
	} {
		for _, target := range []string{"/", "/script.js"} {
			r := request(t, http.MethodGet, target)
			r.Host = host
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, r)
			if answer.Code != want || (want != http.StatusOK && strings.Contains(answer.Body.String(), "set-namespace")) {
				t.Errorf("%s of the host %q: status %d, want %d", target, host, answer.Code, want)
			}
			if answer.Header().Get("Content-Security-Policy") == "" {
				t.Errorf("%s of the host %q lacks the headers that protect browsers", target, host)
			}
		}
	}
}

// fleet returns pools with so many pods each, of which the last one starts.
func fleet(pools, pods int) []*podmanagerv1.Pool {
	var all []*podmanagerv1.Pool
	for i := range pools {
		pool := &podmanagerv1.Pool{
			Key:    &podmanagerv1.PoolKey{Reference: fmt.Sprintf("registry.example/fns/function-%d:v1", i), Digest: "sha256:1"},
			Limits: &podmanagerv1.Pool_Limits{MaxConcurrency: 4}, Waiting: 3, Active: 2, Replica: "pod-manager-1",
		}
		for n := range pods {
			pool.Pods = append(pool.Pods, &podmanagerv1.Pod{
				Name: fmt.Sprintf("function-%d-v1-%d-0a1b2c3d", i, n), State: podmanagerv1.Pod_STATE_READY, Node: "worker-1",
				CreateTime:  timestamppb.New(time.Now().Add(-time.Hour)),
				ReclaimTime: timestamppb.New(time.Now().Add(20 * time.Minute)),
			})
		}
		last := pool.GetPods()[pods-1]
		last.State = podmanagerv1.Pod_STATE_STARTING
		last.Phase = podmanagerv1.Phase_PHASE_PULLING
		last.Reason = "Back-off pulling image: the registry answers 401 Unauthorized"
		all = append(all, pool)
	}
	return all
}

// evaluated returns a history of a cold start, a failure and many warm evaluations.
func evaluated() *evalhistory.History {
	h := evalhistory.New()
	for i := range 60 {
		h.Add("set-namespace:v0.4.5", &gatewayv1.Evaluation{
			TraceId: fmt.Sprintf("%032x", i), Resolved: "registry.example/fns/set-namespace:v0.4.5",
			Evaluator: "exec", Code: "ok", StartTime: timestamppb.New(time.Now().Add(time.Duration(i-60) * time.Second)),
			Duration: durationpb.New(4 * time.Millisecond), Attempts: 1,
			Phases: []*gatewayv1.EvaluationPhase{
				{Name: "queue", Duration: durationpb.New(time.Millisecond)},
				{Name: "run", Offset: durationpb.New(time.Millisecond), Duration: durationpb.New(3 * time.Millisecond)},
			},
		})
	}
	h.Add("other", &gatewayv1.Evaluation{
		Image: "registry.example/fns/typo:v1", Code: "failed_precondition", Reason: "the registry says: no such image",
		Fault:     "caller",
		StartTime: timestamppb.New(time.Now().Add(-time.Second)), Duration: durationpb.New(80 * time.Millisecond),
	})
	cold := &gatewayv1.Evaluation{
		Image: "registry.example/fns/function-0:v1", Evaluator: "pod", Pod: "function-0-v1-0-0a1b2c3d", Code: "ok",
		StartTime: timestamppb.New(time.Now().Add(-2 * time.Second)), Duration: durationpb.New(1800 * time.Millisecond),
		ColdStart: true, Attempts: 1,
	}
	for i, name := range []string{"resolve", "queue", "create", "schedule", "pull", "start", "connect", "run"} {
		cold.Phases = append(cold.Phases, &gatewayv1.EvaluationPhase{
			Name: name, Duration: durationpb.New(225 * time.Millisecond),
			Offset: durationpb.New(time.Duration(i) * 225 * time.Millisecond),
		})
	}
	h.Add("function-0:v1", cold)
	return h
}

func TestPage(t *testing.T) {
	pools := poolsFunc(func() ([]*podmanagerv1.Pool, error) { return fleet(1, 2), nil })
	page := get(t, handler(evaluated(), pools, evalmetrics.Waiting{
		Image: "registry.example/fns/slow:v2", Phase: "queue", Reason: "all 3 pods are busy", Count: 12,
		Longest: 65 * time.Second,
	}), "/")
	for _, want := range []string{
		"gateway-0", "1 queue", "2 run", "1 of 2 pods ready", "3 queued", "v1@sha256:1, owned by pod-manager-1<",
		"Back-off pulling image", "cold start",
		"the registry says: no such image", "set-namespace:v0.4.5",
		`>slow:v2</th><td class="n" data-label="evaluations">12<`, "1m5s", "all 3 pods are busy",
		`<rect class="pull" x="500" width="125"`,
	} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, page.Body)
		}
	}
	if page.Code != http.StatusOK || page.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("answered %d, %v", page.Code, page.Header())
	}
}

// order checks that a page has texts in their order.
func order(t *testing.T, page string, texts ...string) {
	t.Helper()
	for i, at := 0, 0; i < len(texts); i++ {
		n := strings.Index(page[at:], texts[i])
		if n < 0 {
			t.Fatalf("the page lacks %q after %q:\n%s", texts[i], texts[:i], page)
		}
		at += n
	}
}

// TestTroubleIsShownFirst has equal failures of the system, of a function and of a caller, pods that do not start,
// two images with one short name, and many functions without trouble.
func TestTroubleIsShownFirst(t *testing.T) {
	h := evalhistory.New()
	add := func(n int, image, fault, reason string) {
		for range n {
			h.Add(image, &gatewayv1.Evaluation{
				TraceId: strings.Repeat("ab", 16), Image: image, Resolved: image, Code: "unavailable", Fault: fault, Reason: reason,
				StartTime: timestamppb.Now(),
			})
		}
	}
	add(7, "a.example/fns/one:v1", "system", "no pod-manager answers")
	add(3, "b.example/fns/one:v1", "function", "exit code 1")
	add(2, "b.example/fns/two:v1", "caller", "no such tag")
	for i := range 40 {
		h.Add(fmt.Sprintf("fine-%d:v1", i), &gatewayv1.Evaluation{Code: "ok", StartTime: timestamppb.Now()})
	}
	listed := fleet(3, 1)
	for i, pool := range listed {
		pool.Waiting = 0
		pool.Pods[0].State = podmanagerv1.Pod_STATE_READY
		if i == 2 {
			pool.LastFailure = "no node takes the pod"
			pool.Pods[0].State = podmanagerv1.Pod_STATE_FAILED
		}
	}
	pools := poolsFunc(func() ([]*podmanagerv1.Pool, error) { return listed, nil })
	warnings := func() []string { return []string{"the certificate expires soon"} }
	waits := active{{
		Image: "c.example/three:v1", Phase: "queue", Reason: "all pods are busy", Count: 4, Longest: time.Minute,
	}}
	server := status.New(h, waits, "gateway-0", warnings, none).Page(pools, slog.New(slog.DiscardHandler))
	page := get(t, server, "/").Body.String()
	order(t, page, `class="health trouble"`, "the certificate expires soon",
		"7 evaluations failed because of the system in the last 5 minutes, "+
			"the last one (one:v1) as unavailable: no pod-manager answers",
		"4 evaluations wait, the longest for 1m0s in the phase queue: all pods are busy",
		"1 of 3 functions cannot get a pod: function-2:v1: no node takes the pod",
		`id="waiting"`, "three:v1", `id="failures"`,
		`>a.example/fns/one:v1</th><td class="n" data-label="count">7<`, `class="bad">system<`,
		"<code>"+strings.Repeat("ab", 16),
		`>two:v1</th><td class="n" data-label="count">2<`, `class="faint">caller<`,
		`>b.example/fns/one:v1</th><td class="n" data-label="count">3<`, `class="busy">function<`,
		`id="functions"`, `class="all"> all 43`, "7 of 7", "3 of 3", "0 of 1", `id="pools"`, "function-2:v1", "function-0:v1")
	if n := strings.Count(page, `class="bad"`); n != 2+7 {
		t.Errorf("%d texts are red, want a line and 7 evaluations: the pool's failure may be its image's", n)
	}
	if n := strings.Count(page, ` class="more"`); n != 43-20+52-20 {
		t.Errorf("%d rows are shown on demand, want those beyond 20 functions and 20 evaluations", n)
	}
}

// TestPageOfAHealthyGateway has failures of functions and callers only, and one of the system that is long over.
func TestPageOfAHealthyGateway(t *testing.T) {
	h := evalhistory.New()
	for fault, ago := range map[string]time.Duration{"function": 0, "caller": 0, "system": time.Hour} {
		h.Add("fn:v1", &gatewayv1.Evaluation{Code: "x", Fault: fault, StartTime: timestamppb.New(time.Now().Add(-ago))})
	}
	short := evalmetrics.Waiting{Image: "fn:v1", Phase: "queue", Count: 1, Longest: time.Second}
	if page := get(t, handler(h, nil, short), "/").Body.String(); !strings.Contains(page, `class="health well"`) {
		t.Errorf("the page shows a problem:\n%s", page)
	}
}

// TestBarsHaveOneScale compares the bars of an evaluation and of one that took ten times as long.
func TestBarsHaveOneScale(t *testing.T) {
	h := evalhistory.New()
	for _, d := range []time.Duration{time.Second, 100 * time.Millisecond} {
		h.Add("fn:v1", &gatewayv1.Evaluation{
			Code: "ok", StartTime: timestamppb.Now(), Duration: durationpb.New(d),
			Phases: []*gatewayv1.EvaluationPhase{{Name: "run", Duration: durationpb.New(d)}},
		})
	}
	page := get(t, handler(h, nil), "/").Body.String()
	order(t, page, "Full width: 1s", `class="run" x="0" width="100"`, `class="run" x="0" width="1000"`)
}

// TestPageOfAnEmptyGateway has no pod-manager, or one that does not answer.
func TestPageOfAnEmptyGateway(t *testing.T) {
	silent := func() ([]*podmanagerv1.Pool, error) { return nil, errors.New("no <replica> answers") }
	tests := map[string]struct {
		pools status.Pools
		want  string
	}{
		"no pods":    {nil, "Pools and pods"},
		"no answers": {poolsFunc(silent), "no &lt;replica&gt; answers"},
		"no API":     {problems{"pod-manager-0: no API"}, `class="health trouble"><li>pod-manager-0: no API`},
	}
	for name, tc := range tests {
		page := get(t, handler(evalhistory.New(), tc.pools), "/")
		if page.Code != http.StatusOK || !strings.Contains(page.Body.String(), tc.want) {
			t.Errorf("%s: answered %d, and lacks %q:\n%s", name, page.Code, tc.want, page.Body)
		}
	}
}

// TestPageLoadsNothingElse holds the headers and the files that protect browsers.
func TestPageLoadsNothingElse(t *testing.T) {
	h := handler(evaluated(), nil)
	for target, contentType := range map[string]string{
		"/": "text/html", "/style.css": "text/css", "/script.js": "text/javascript",
	} {
		answer := get(t, h, target)
		if policy := answer.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", target, policy)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			if got := answer.Header().Get(name); got != want {
				t.Errorf("%s has the header %s: %q, want %q", target, name, got, want)
			}
		}
		if got := answer.Header().Get("Content-Type"); answer.Code != http.StatusOK || !strings.HasPrefix(got, contentType) {
			t.Errorf("%s: status %d, type %q", target, answer.Code, got)
		}
		for _, bad := range []string{"http://", "https://", "style=", "onclick=", "<script>"} {
			if strings.Contains(answer.Body.String(), bad) {
				t.Errorf("%s has %q, which the policy does not permit", target, bad)
			}
		}
	}
	for _, target := range []string{"/assets/page.html", "/page.html", "/../page.go", "/metrics"} {
		if answer := get(t, h, target); answer.Code == http.StatusOK {
			t.Errorf("%s is served", target)
		}
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request(t, http.MethodPost, "/"))
	if answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", answer.Code)
	}
}

// TestHostileTextsAreEscaped puts markup into each text that callers, functions and registries choose.
func TestHostileTextsAreEscaped(t *testing.T) {
	const hostile = `"><script>alert(1)</script><img src=x onerror='alert(2)'>` + "\u202egnp.exe\u200b"
	h := evalhistory.New()
	h.Add(hostile, &gatewayv1.Evaluation{
		TraceId: hostile, Image: hostile, Resolved: hostile, Evaluator: hostile, Code: hostile, Reason: hostile, Pod: hostile,
		StartTime: timestamppb.Now(), Phases: []*gatewayv1.EvaluationPhase{{Name: hostile, Reason: hostile}},
	})
	pools := fleet(1, 1)
	pools[0].Key.Reference, pools[0].Key.Digest, pools[0].LastFailure = hostile, hostile, hostile
	pools[0].Replica = hostile
	pod := pools[0].GetPods()[0]
	pod.Name, pod.Node, pod.Reason = hostile, hostile, hostile
	listed := poolsFunc(func() ([]*podmanagerv1.Pool, error) { return pools, nil })
	waiting := evalmetrics.Waiting{Image: hostile, Phase: hostile, Reason: hostile, Count: 1}
	page := get(t, handler(h, listed, waiting), "/").Body.String()
	if n := strings.Count(page, "<script"); n != 1 { // the page's own
		t.Errorf("the page has %d scripts:\n%s", n, page)
	}
	if strings.Contains(page, "<img") || !strings.Contains(page, "&lt;img") {
		t.Errorf("the page has markup of others:\n%s", page)
	}
	if strings.ContainsAny(page, "\u202e\u200b") || !strings.Contains(page, `\u202egnp.exe\u200b`) {
		t.Errorf("the page has hidden characters of others:\n%s", page)
	}
}

// TestPageOf500Pods has what a large cluster has, in a size that browsers load each two seconds.
func TestPageOf500Pods(t *testing.T) {
	pools := fleet(50, 10)
	page := get(t, handler(evaluated(), poolsFunc(func() ([]*podmanagerv1.Pool, error) { return pools, nil })), "/")
	const maxBytes = 512 << 10
	if n := strings.Count(page.Body.String(), "-0a1b2c3d</th>"); n != 500 || page.Body.Len() > maxBytes {
		t.Errorf("the page has %d pods in %d bytes, want 500 in at most %d", n, page.Body.Len(), maxBytes)
	}
}

// TestPoolsWithProblemsAreOpen has more pools than are open without a problem.
func TestPoolsWithProblemsAreOpen(t *testing.T) {
	pools := fleet(20, 1)
	for i, pool := range pools {
		pool.Waiting = 0
		pool.Pods[0].State = podmanagerv1.Pod_STATE_READY
		switch i {
		case 0:
			pool.Waiting = 1
		case 1:
			pool.LastFailure = "no such image"
		case 2:
			pool.Pods[0].State = podmanagerv1.Pod_STATE_FAILED
		}
	}
	for n, want := range map[int]int{20: 3, 10: 10} {
		listed := poolsFunc(func() ([]*podmanagerv1.Pool, error) { return pools[:n], nil })
		page := get(t, handler(evaluated(), listed), "/").Body.String()
		if all, open := strings.Count(page, "<details"), strings.Count(page, ` open>`); all != n || open != want {
			t.Errorf("%d pools, of which %d are open, want %d and %d", all, open, n, want)
		}
	}
}
