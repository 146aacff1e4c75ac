// SPDX-License-Identifier: Apache-2.0

// Package charts draws Grafana dashboards as SVG pictures for the documentation, with data from Prometheus.
package charts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of a column and a row of Grafana's grid in a picture.
const (
	column = 14 * vg.Millimeter
	row    = 9 * vg.Millimeter
	// maxLines is the maximum number of lines in a chart, because readers cannot distinguish more.
	maxLines = 8
)

// Dashboard contains the fields of a Grafana dashboard that are needed to draw it.
type Dashboard struct {
	Title  string
	Panels []Panel
}

// Panel is a chart of a dashboard, or a row that contains charts.
type Panel struct {
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr, LegendFormat string
		Datasource         struct{ Type string }
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
	Panels      []Panel // charts of a row
}

// Read parses a dashboard. It replaces collapsible rows by their panels.
func Read(content []byte) (Dashboard, error) {
	var read, d Dashboard
	if err := json.Unmarshal(content, &read); err != nil {
		return d, fmt.Errorf("read a dashboard: %w", err)
	}
	d.Title = read.Title
	for _, p := range read.Panels {
		if p.Targets != nil {
			d.Panels = append(d.Panels, p)
		}
		d.Panels = append(d.Panels, p.Panels...)
	}
	return d, nil
}

// Line is a time series in a chart. X is the time in seconds since the chart's beginning.
type Line struct {
	Labels map[string]string
	Points plotter.XYs
}

// Range runs a PromQL query over the chart's time range, and returns a line for each series.
type Range func(expr string) ([]Line, error)

// Write draws a dashboard as SVG.
func (d Dashboard) Write(to io.Writer, query Range) error {
	var width, height int
	for _, p := range d.Panels {
		width, height = max(width, p.GridPos.X+p.GridPos.W), max(height, p.GridPos.Y+p.GridPos.H)
	}
	w, h := vg.Length(width)*column, vg.Length(height)*row
	picture := vgsvg.New(w, h)
	all := draw.New(picture)
	for _, p := range d.Panels {
		chart, err := p.drawChart(query)
		if err != nil {
			return fmt.Errorf("draw %s: %w", p.Title, err)
		}
		at := p.GridPos
		left, right := vg.Length(at.X)*column, w-vg.Length(at.X+at.W)*column
		top, bottom := vg.Length(at.Y)*row, h-vg.Length(at.Y+at.H)*row
		const margin = 3 * vg.Millimeter
		chart.Draw(draw.Crop(all, left+margin, -right-margin, bottom+margin, -top-margin))
	}
	_, err := picture.WriteTo(to)
	return err
}

// drawChart draws a line for each time series that the panel's queries return.
func (p Panel) drawChart(query Range) (*plot.Plot, error) {
	chart := plot.New()
	chart.Title.Text = p.Title
	chart.X.Label.Text = "seconds"
	chart.Y.Label.Text = unitName(p.FieldConfig.Defaults.Unit)
	chart.Y.Min, chart.Legend.Top, chart.Legend.Left = 0, true, true
	chart.Title.TextStyle.Font.Size = vg.Points(10)
	chart.Legend.TextStyle.Font.Size = vg.Points(7)
	drawn := 0
	for _, target := range p.Targets {
		if target.Datasource.Type != "prometheus" {
			continue
		}
		lines, err := query(target.Expr)
		if err != nil {
			return nil, err
		}
		for _, one := range lines[:min(len(lines), maxLines-drawn)] {
			line, err := plotter.NewLine(one.Points)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", target.Expr, err)
			}
			line.Color = plotutil.Color(drawn)
			chart.Add(line)
			chart.Legend.Add(formatLegend(target.LegendFormat, one.Labels), line)
			drawn++
		}
	}
	if drawn == 0 {
		chart.Title.Text += ": nothing happened"
		chart.X.Max, chart.Y.Max = 1, 1
	}
	chart.Y.Max = cmp.Or(chart.Y.Max, 1)
	return chart, nil
}

// inLegend matches a placeholder for a label in the format of a legend, such as {{code}}.
var inLegend = regexp.MustCompile(`\{\{\w+\}\}`)

// formatLegend returns the text for a line in a chart's legend. It replaces each {{label}} in the format by the
// label's value, which is empty if the label is missing.
func formatLegend(format string, labels map[string]string) string {
	return inLegend.ReplaceAllStringFunc(format, func(label string) string { return labels[strings.Trim(label, "{}")] })
}

// unitName returns a readable name for a unit in Grafana. Without such a name, it returns the unit itself.
func unitName(grafana string) string {
	names := map[string]string{"s": "seconds", "reqps": "a second", "ops": "a second", "percentunit": "share", "short": ""}
	if name, ok := names[grafana]; ok {
		return name
	}
	return grafana
}

// Finite returns the points with finite values. A quantile is NaN at times without evaluations.
func Finite(points plotter.XYs) plotter.XYs {
	var finite plotter.XYs
	for _, p := range points {
		if !math.IsNaN(p.Y) && !math.IsInf(p.Y, 0) {
			finite = append(finite, p)
		}
	}
	return finite
}
