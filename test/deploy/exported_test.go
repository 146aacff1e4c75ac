// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krm-function-runner/function-runner/test/internal/metrics"
)

// exported returns the types of our programs' metrics, such as "Counter", by their names in Prometheus.
var exported = sync.OnceValues(func() (map[string]string, error) {
	found, err := metrics.Metrics(root)
	kinds := map[string]string{}
	for _, m := range found {
		kinds[m.Name] = m.Type
	}
	return kinds, err
})

// base returns the metric of a series: a histogram has three.
func base(kinds map[string]string, series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok && kinds[name] == "Histogram" {
			return name
		}
	}
	return series
}

// promised are the metrics that must stay: users' dashboards have them.
var promised = []string{
	"fn_evaluations_total", "fn_evaluation_duration_seconds", "fn_phase_duration_seconds", "fn_cold_starts_total",
	"fn_queue_depth",
	"fn_rejections_total", "fn_pods", "fn_pod_evictions_total", "fn_retries_total", "fn_request_bytes",
	"fn_response_bytes", "fn_registry_requests_total",
}

// TestMetricsAreDocumented checks that the table of metrics is generated from the code, that each metric has a meaning
// and labels that its package sets, and that documents name no other metrics.
func TestMetricsAreDocumented(t *testing.T) {
	kinds, err := exported()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range promised {
		if kinds[name] == "" {
			t.Errorf("%s is promised, and no program reports it", name)
		}
	}
	found, err := metrics.Metrics(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range found {
		if m.Meaning == "" || strings.Contains(m.Meaning, "Label") {
			t.Errorf("%s has the description %q, want a meaning and then the labels", m.Name, m.Meaning)
		}
	}
	document := string(mustRead(t, filepath.Join(root, "docs/metrics.md")))
	want, err := metrics.Generate(root, document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, document); diff != "" {
		t.Errorf("run make generate (-code +document):\n%s", diff)
	}
	for _, document := range []string{"docs/metrics.md", "ARCHITECTURE.md", "deploy/README.md"} {
		for _, series := range regexp.MustCompile(`\bfn_[a-z_]+`).FindAllString(
			string(mustRead(t, filepath.Join(root, document))), -1) {
			if kinds[base(kinds, series)] == "" {
				t.Errorf("%s names %s, which no program reports", document, series)
			}
		}
	}
}

// labelOption matches the code that sets a label.
var labelOption = regexp.MustCompile(`attribute\.String\("([a-z_]+)"`)

// TestDescriptionsListLabels compares the labels in descriptions with the labels that each package sets.
func TestDescriptionsListLabels(t *testing.T) {
	found, err := metrics.Metrics(root)
	if err != nil {
		t.Fatal(err)
	}
	set, described := map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, m := range found {
		if set[m.Package] == nil {
			set[m.Package], described[m.Package] = map[string]bool{}, map[string]bool{}
			for line := range strings.Lines(packageSource(t, m.Package)) {
				if strings.Contains(line, "trace.WithAttributes(") {
					continue // attributes of spans
				}
				for _, match := range labelOption.FindAllStringSubmatch(line, -1) {
					set[m.Package][match[1]] = true
				}
			}
		}
		for _, label := range m.Labels {
			described[m.Package][label] = true
		}
	}
	for name := range set {
		if diff := cmp.Diff(set[name], described[name]); diff != "" {
			t.Errorf("labels of the metrics of %s (-code +descriptions):\n%s", name, diff)
		}
	}
}

// packageSource returns the source of a package without its tests.
func packageSource(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			source.Write(mustRead(t, path))
		}
	}
	return source.String()
}
