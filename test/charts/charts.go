// SPDX-License-Identifier: Apache-2.0

// Package charts draws dashboards with the data of a Prometheus, for the documents: Grafana draws them for users.
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

// Sizes of a picture: a column and a row of a dashboard's grid.
const (
	column = 14 * vg.Millimeter
	row    = 9 * vg.Millimeter
	// maxLines bounds the lines of a panel, as a reader can tell them apart.
	maxLines = 8
)

// Dashboard is the part of a Grafana dashboard that is drawn.
type Dashboard struct {
	Title  string
	Panels []Panel
}

// Panel is a chart of a dashboard.
type Panel struct {
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct {
		Expr, LegendFormat string
		Datasource         struct{ Type string }
	}
	FieldConfig struct{ Defaults struct{ Unit string } }
	Panels      []Panel // of a row
}

// Read reads a dashboard, with the panels of its rows in place of the rows.
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

// Line contains the values of a series, by seconds since the begin of the chart.
type Line struct {
	Labels map[string]string
	Points plotter.XYs
}

// Range returns the lines of a query.
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

// drawChart returns the chart of a panel, with a line for each series of its queries.
func (p Panel) drawChart(query Range) (*plot.Plot, error) {
	chart := plot.New()
	chart.Title.Text, chart.X.Label.Text, chart.Y.Label.Text = p.Title, "seconds", unitName(p.FieldConfig.Defaults.Unit)
	chart.Y.Min, chart.Legend.Top, chart.Legend.Left = 0, true, true
	chart.Title.TextStyle.Font.Size, chart.Legend.TextStyle.Font.Size = vg.Points(10), vg.Points(7)
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

// inLegend finds the labels in the format of a line's name.
var inLegend = regexp.MustCompile(`\{\{\w+\}\}`)

// formatLegend is the name of a line: labels in the format are replaced by their values, and by nothing if it has none.
func formatLegend(format string, labels map[string]string) string {
	return inLegend.ReplaceAllStringFunc(format, func(label string) string { return labels[strings.Trim(label, "{}")] })
}

// unitName returns the readable name of a Grafana unit.
func unitName(grafana string) string {
	names := map[string]string{"s": "seconds", "reqps": "a second", "ops": "a second", "percentunit": "share", "short": ""}
	if name, ok := names[grafana]; ok {
		return name
	}
	return grafana
}

// Finite returns the points with a value: quantiles of nothing have none.
func Finite(points plotter.XYs) plotter.XYs {
	var finite plotter.XYs
	for _, p := range points {
		if !math.IsNaN(p.Y) && !math.IsInf(p.Y, 0) {
			finite = append(finite, p)
		}
	}
	return finite
}
