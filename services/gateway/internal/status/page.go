// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"embed"
	"html/template"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/phase"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/history"
)

//go:embed assets
var assets embed.FS

// shownRows is how many rows of a table are shown until the user asks for all.
const shownRows = 20

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"beyond": func(n int) bool { return n >= shownRows },
}).ParseFS(assets, "assets/page.html"))

// Pools lists the pools of function pods.
type Pools interface {
	ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error)
}

const (
	// poolsTimeout is how long the pod-managers may take to list their pools.
	poolsTimeout = 3 * time.Second
	// shownEvaluations is how many of the last evaluations a page has.
	shownEvaluations = 100
	// openPools is up to how many pools the pods of all are shown. With more pools, the user opens the ones
	// without problems.
	openPools = 10
)

// policy permits the page its own two files, and nothing else: texts of functions and registries are on it.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers protect browsers: the page loads nothing else, and no other site reads or frames it.
var headers = map[string]string{
	"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
}

// Page returns the handler of the page for browsers. It shows the pools of pods; nil has none. Besides IP
// addresses and localhost, browsers may ask for it by the given host names.
func (s *Service) Page(pools Pools, log *slog.Logger, names ...string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		var page bytes.Buffer
		if err := pageTemplate.Execute(&page, s.view(r.Context(), pools, time.Now())); err != nil {
			log.ErrorContext(r.Context(), "status page not rendered", "error", err)
			http.Error(w, "the page could not be rendered: the gateway's log has the reason", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, excerpt.Visible(page.String())) // the browser has left
	})
	for _, name := range []string{"style.css", "script.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, "assets/"+name)
		})
	}
	guarded := guard(names, mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		guarded.ServeHTTP(w, r)
	})
}

// view returns what the page shows.
func (s *Service) view(ctx context.Context, lister Pools, now time.Time) view {
	status, _ := s.GetStatus(ctx, &gatewayv1.GetStatusRequest{}) // never fails
	listed, err := listPools(ctx, lister)
	problems := append(status.GetProblems(), phase.PoolProblems(listed)...)
	if err != nil {
		problems = append([]string{"the pods are not known: " + err.Error()}, problems...)
	}
	recent := s.history.Evaluations(history.Select{Max: shownEvaluations})
	failed := s.history.Evaluations(history.Select{Failed: true})
	name := phase.ShortNames(images(status, listed, recent, failed)...)
	v := view{
		Replica: status.GetReplica(), Version: status.GetVersion(), Up: short(now.Sub(status.GetStartTime().AsTime())),
		Active: phase.Counts(status.GetActive()), Phases: phase.Names, Problems: problems,
		Functions: functions(status.GetFunctions()), Waiting: waiting(status.GetWaiting(), name),
		Pools: pools(listed, now, name),
	}
	for _, f := range phase.GroupFailures(failed) {
		v.Failures = append(v.Failures, newFailure(f, now, name))
	}
	var longest time.Duration
	v.Evaluations, longest = evaluations(recent, now, name)
	v.Scale = phase.Took(longest)
	return v
}

// listPools returns the pools of function pods; none without a lister.
func listPools(ctx context.Context, lister Pools) ([]*podmanagerv1.Pool, error) {
	if lister == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, poolsTimeout)
	defer cancel()
	resp, err := lister.ListPools(ctx, &podmanagerv1.ListPoolsRequest{})
	return resp.GetPools(), err
}

// images returns the names of all images on the page but those of the functions, which are labels of metrics.
func images(
	status *gatewayv1.GetStatusResponse, listed []*podmanagerv1.Pool, evaluations ...[]*gatewayv1.Evaluation,
) (names []string) {
	for _, w := range status.GetWaiting() {
		names = append(names, w.GetImage())
	}
	for _, pool := range listed {
		names = append(names, pool.GetKey().GetReference())
	}
	for _, e := range slices.Concat(evaluations...) {
		names = append(names, phase.Image(e))
	}
	return names
}
