// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

// TestRegistriesThatAnswerHaveLabels has more registries invented than there are labels, before one that answers is
// called, and does not answer later. At the end, more registries answer than there are labels.
func TestRegistriesThatAnswerHaveLabels(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	m := newMetrics(tel)
	call := func(host string, answer *http.Response, failure error) {
		ctx := context.WithValue(t.Context(), purposeKey{}, purpose{op: opPing})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/v2/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.sendObserved(host, req, func(*http.Request) (*http.Response, error) { return answer, failure })
	}
	gone, found := errors.New("connection refused"), &http.Response{StatusCode: http.StatusOK}
	for n := range 2 * maxRegistries {
		call(fmt.Sprintf("invented-%d.example", n), nil, gone)
	}
	call("real.example", found, nil)
	call("real.example", nil, gone)
	for n := range maxRegistries {
		call(fmt.Sprintf("answers-%d.example", n), found, nil)
	}
	metrics := scrape()
	for _, line := range []string{
		`{code="error",op="ping",registry="other"} 200`, `{code="200",op="ping",registry="other"} 1`,
		`{code="200",op="ping",registry="real.example"} 1`, `{code="error",op="ping",registry="real.example"} 1`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no line %s in\n%s", line, metrics)
		}
	}
}
