// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"github.com/krm-function-runner/function-runner/test/charts"
)

// TestDashboards draws each dashboard with a line of each query, and with none.
func TestDashboards(t *testing.T) {
	files, err := filepath.Glob("../../deploy/observability/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	points := charts.Finite(plotter.XYs{{X: 0, Y: math.NaN()}, {X: 1, Y: 2}, {X: 2, Y: math.Inf(1)}, {X: 3, Y: 4}})
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := charts.Read(content)
		if err != nil {
			t.Fatal(err)
		}
		some := write(t, d, func(string) ([]charts.Line, error) {
			return []charts.Line{{Labels: map[string]string{"code": "OK & more"}, Points: points}}, nil
		})
		none := write(t, d, func(string) ([]charts.Line, error) { return nil, nil })
		for _, p := range d.Panels {
			if !strings.Contains(some, p.Title) {
				t.Errorf("%s has no panel %s", file, p.Title)
			}
		}
		if empty := strings.Count(none, "nothing happened"); empty != len(d.Panels) {
			t.Errorf("%s: %d of %d panels are empty without data", file, empty, len(d.Panels))
		}
		if empty := strings.Count(some, "nothing happened"); empty != others(d) {
			t.Errorf("%s: %d panels are empty with data for each query", file, empty)
		}
	}
}

// others counts the panels that ask no Prometheus.
func others(d charts.Dashboard) (n int) {
	for _, p := range d.Panels {
		asks := false
		for _, target := range p.Targets {
			asks = asks || target.Datasource.Type == "prometheus"
		}
		if !asks {
			n++
		}
	}
	return n
}

func write(t *testing.T, d charts.Dashboard, query charts.Range) string {
	t.Helper()
	var svg strings.Builder
	if err := d.Write(&svg, query); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(svg.String()))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return svg.String()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinesAreBounded draws a panel with many series.
func TestLinesAreBounded(t *testing.T) {
	d, err := charts.Read([]byte(`{"panels": [{"title": "many", "gridPos": {"w": 8, "h": 8},
		"targets": [{"expr": "m", "legendFormat": "of {{pod}}{{none}}", "datasource": {"type": "prometheus"}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	svg := write(t, d, func(string) ([]charts.Line, error) {
		line := charts.Line{Labels: map[string]string{"pod": "a"}, Points: plotter.XYs{{X: 1, Y: 1}}}
		return []charts.Line{line, line, line, line, line, line, line, line, line, line}, nil
	})
	if n := strings.Count(svg, ">of a<"); n != 8 {
		t.Errorf("%d lines are drawn, want 8", n)
	}
}
