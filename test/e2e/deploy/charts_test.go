// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"github.com/krm-function-runner/function-runner/test/charts"
)

var observeCharts = flag.String("observe.charts", "", "directory to draw the dashboards into, as SVG; none if empty")

// steps is how many points a line has at most.
const steps = 120

// draw draws each dashboard, with what the Prometheus has seen since a time.
func (p prometheus) draw(ctx context.Context, t *testing.T, namespace string, since time.Time) {
	t.Helper()
	if *observeCharts == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(root, "deploy/observability/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	fill := strings.NewReplacer("$namespace", namespace, "$function", ".*", "$__rate_interval", "15s")
	until := time.Now()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dashboard, err := charts.Read(content)
		if err != nil {
			t.Fatal(err)
		}
		var picture bytes.Buffer
		err = dashboard.Write(&picture, func(expr string) ([]charts.Line, error) {
			return p.lines(ctx, t, fill.Replace(expr), since, until)
		})
		name := "dashboard-" + strings.TrimSuffix(filepath.Base(file), ".json") + ".svg"
		if err = errors.Join(err, os.WriteFile(filepath.Join(*observeCharts, name), picture.Bytes(), 0o644)); err != nil {
			t.Error(err)
		}
	}
}

// lines returns what a query had from one time to another.
func (p prometheus) lines(
	ctx context.Context, t *testing.T, expr string, since, until time.Time,
) (lines []charts.Line, err error) {
	t.Helper()
	query := url.Values{
		"query": {expr}, "start": {strconv.FormatInt(since.Unix(), 10)}, "end": {strconv.FormatInt(until.Unix(), 10)},
		"step": {strconv.Itoa(1 + int(until.Sub(since).Seconds())/steps)},
	}
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	p.get(ctx, t, "/api/v1/query_range?"+query.Encode(), &answer)
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: Prometheus answers %q %s", expr, answer.Status, answer.Error)
	}
	for _, series := range answer.Data.Result {
		var points plotter.XYs
		for _, v := range series.Values {
			at, _ := v[0].(float64)
			text, _ := v[1].(string)
			y, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", expr, err)
			}
			points = append(points, plotter.XY{X: at - float64(since.Unix()), Y: y})
		}
		if points = charts.Finite(points); len(points) > 0 {
			lines = append(lines, charts.Line{Labels: series.Metric, Points: points})
		}
	}
	return lines, nil
}
