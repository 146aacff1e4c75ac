// SPDX-License-Identifier: Apache-2.0

package imageresolver_test

import (
	"strings"
	"testing"

	imageresolverv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/imageresolver/v1"
	"github.com/krm-function-runner/function-runner/libs/testing/scrapetest"
)

func TestMetrics(t *testing.T) {
	tel, scrape := scrapetest.New(t)
	s := open()(t)
	s.registry.Push(t, "fn:v1", function)
	r := startWith(t, s.config, tel)
	for _, refresh := range []bool{false, false, true} {
		_, err := r.ResolveImage(t.Context(),
			&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:v1", Refresh: refresh})
		if err != nil {
			t.Fatal(err)
		}
		if refresh {
			s.registry.Push(t, "fn:v1", function)
		}
	}
	if _, err := r.ResolveImage(
		t.Context(),
		&imageresolverv1.ResolveImageRequest{Image: s.registry.Host + "/fn:v1", Refresh: true},
	); err != nil {
		t.Fatal(err)
	}
	_, _ = resolve(t, r, s.registry.Host+"/fn:v2")
	metrics := scrape()
	for _, line := range []string{
		`fn_registry_requests_total{code="200",op="manifest",registry="` + s.registry.Host + `"} 4`,
		`fn_registry_requests_total{code="404",op="manifest",registry="` + s.registry.Host + `"} 1`,
		`fn_registry_requests_total{code="200",op="blob",registry="` + s.registry.Host + `"} 2`,
		`fn_resolver_answers_total{source="hit"} 1`, `fn_resolver_answers_total{source="miss"} 4`,
		`fn_resolver_tag_moves_total 1`, `fn_resolver_cache_size_bytes `,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(metrics)
	}
}
