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
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
)

//go:embed assets
var assets embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(functions).ParseFS(assets, "assets/page.html"))

// Pools lists the function pods for the status page. A lease.Manager implements it.
type Pools interface {
	ListPools(ctx context.Context, req *podmanagerv1.ListPoolsRequest) (*podmanagerv1.ListPoolsResponse, error)
}

const (
	// poolsTimeout limits the wait for the list of pods. After that, the page shows an error instead of the pods.
	poolsTimeout = 3 * time.Second
	// shownEvaluations is the number of recent evaluations on the page.
	shownEvaluations = 100
	// openPools is the maximum number of pools for which the page shows all pods. If there are more pools, the page at
	// first shows only the pods of pools with problems. Users can unfold the rest.
	openPools = 10
)

// policy is the Content-Security-Policy. It permits only the page's own style sheet and script, because the page
// contains texts from functions and registries, which could contain scripts.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// headers contains the security headers of the page. Browsers then load no files from other sites for the page, and
// other sites can neither read nor frame it.
var headers = map[string]string{
	"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
	"Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
	"Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
}

// Page returns the HTTP handler of the status page. If pools is nil, the page shows no pods. names are the host
// names for which the page is served, in addition to IP addresses and localhost.
func (s *Service) Page(pools Pools, log *slog.Logger, names ...string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		var page bytes.Buffer
		if err := pageTemplate.Execute(&page, s.pageView(r.Context(), pools, time.Now())); err != nil {
			log.ErrorContext(r.Context(), "status page not rendered", "error", err)
			http.Error(w, "the page could not be rendered: the gateway's log has the reason", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, excerpt.Visible(page.String())) // an error means that the browser left
	})
	for _, name := range []string{"style.css", "script.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, "assets/"+name)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		// Reject unknown host names, because other websites could otherwise read the page through DNS rebinding.
		if !rpcserve.Hosts(names).Permit(r.Host) {
			http.Error(w, "this host name is not permitted: use an IP address or localhost, or list the name in the "+
				"gateway's setting FNR_STATUS_HOSTS", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
