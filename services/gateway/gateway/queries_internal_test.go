// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1/gatewayv1connect"
	"github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1/podmanagerv1connect"
)

// timed is a response that records the deadlines that it gets.
type timed struct {
	*httptest.ResponseRecorder

	deadlines []time.Time
}

func (w *timed) SetWriteDeadline(t time.Time) error {
	w.deadlines = append(w.deadlines, t)
	return nil
}

// TestAnswersToQueriesHaveADeadline keeps clients that do not read from holding answers in memory.
func TestAnswersToQueriesHaveADeadline(t *testing.T) {
	for path, want := range map[string]bool{
		gatewayv1connect.StatusServiceListEvaluationsProcedure:   true,
		podmanagerv1connect.PodManagerServiceListPoolsProcedure:  true,
		podmanagerv1connect.PodManagerServiceWatchPoolsProcedure: false, // it lasts for as long as its client likes
		"/": true, // the status page
	} {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		var during []time.Time
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { during = slices.Clone(w.deadlines) })
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
		newQueries().limitQueries(next).ServeHTTP(w, r)
		if got := len(during) == 1 && !during[0].IsZero(); got != want {
			t.Errorf("%s: deadlines %v, want one: %v", path, during, want)
		}
		if want && !w.deadlines[len(w.deadlines)-1].IsZero() {
			t.Errorf("%s: the next request of the connection has the deadline too", path)
		}
	}
}
