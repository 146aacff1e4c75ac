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
	"time"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

//go:embed assets
var assets embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(functions).ParseFS(assets, "assets/page.html"))

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
