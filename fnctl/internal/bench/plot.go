// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Sizes of a plot in pixels.
const (
	plotWidth, plotHeight = 520, 300
	marginLeft, marginTop = 60, 40
	areaWidth, areaHeight = plotWidth - marginLeft - 20, plotHeight - marginTop - 50
	legendLine            = 18
)

// colours of the targets, distinguishable also by readers who see some colours alike.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// plot is one input: latency, in steps of ten, against the evaluations in a second that were reached.
type plot struct {
	input   string
	targets []string
	points  map[string][]point
	maxX    float64
	// Powers of ten in milliseconds.
	low, high float64
}

type point struct{ rate, p50, p99 float64 }

// SVG returns the report as a picture: latency against load, one plot for each input. Lines are medians, and
// dashed lines 99th percentiles.
func (r Report) SVG() string {
	plots := r.plots()
	height := 0
	var body strings.Builder
	for _, p := range plots {
		fmt.Fprintf(&body, `<g transform="translate(0,%d)">`+"\n", height)
		p.draw(&body)
		body.WriteString("</g>\n")
		height += plotHeight + legendLine*len(p.targets)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" `+
		`font-family="sans-serif" font-size="12">`+"\n<title>%s</title>\n"+
		`<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n%s</svg>\n",
		plotWidth, height, plotWidth, html.EscapeString("Latency against load. "+r.Machine.String()), &body)
}

// plots returns a plot for each input in which something succeeded.
func (r Report) plots() []*plot {
	var plots []*plot
	for _, level := range r.Levels {
		if level.Burst > 0 {
			continue // it has no load that goes on
		}
		i := slices.IndexFunc(plots, func(p *plot) bool { return p.input == level.Input })
		if i < 0 {
			i = len(plots)
			plots = append(plots, &plot{input: level.Input, points: map[string][]point{}, low: 9, high: -9})
		}
		for _, result := range level.Results {
			if result.Milliseconds != nil {
				plots[i].add(result.Target, point{result.PerSecond, result.Milliseconds.P50, result.Milliseconds.P99})
			}
		}
	}
	return slices.DeleteFunc(plots, func(p *plot) bool { return len(p.targets) == 0 })
}

func (p *plot) add(target string, at point) {
	if !slices.Contains(p.targets, target) {
		p.targets = append(p.targets, target)
	}
	p.points[target] = append(p.points[target], at)
	p.maxX = max(p.maxX, at.rate)
	p.low = min(p.low, math.Floor(math.Log10(at.p50)))
	p.high = max(p.high, math.Ceil(math.Log10(at.p99)), p.low+1)
}

// at returns where a point is, in pixels.
func (p *plot) at(rate, ms float64) (x, y float64) {
	x = marginLeft + areaWidth*rate/p.maxX
	y = marginTop + areaHeight*(p.high-math.Log10(ms))/(p.high-p.low)
	return x, y
}

func (p *plot) draw(b *strings.Builder) {
	text := func(x, y float64, anchor, text string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
	}
	text(marginLeft, marginTop-18, "start", p.input)
	text(plotWidth-20, marginTop+areaHeight+36, "end", "evaluations per second")
	for power := p.low; power <= p.high; power++ {
		ms := math.Pow(10, power)
		x, y := p.at(0, ms)
		fmt.Fprintf(b, `<path d="M%.1f %.1fh%d" stroke="#cccccc"/>`+"\n", x, y, areaWidth)
		text(x-6, y+4, "end", fmt.Sprintf("%g ms", ms))
	}
	for i := range 5 {
		x, y := p.at(p.maxX*float64(i)/4, math.Pow(10, p.low))
		text(x, y+18, "middle", fmt.Sprintf("%.*f", decimals(p.maxX)/2, p.maxX*float64(i)/4))
	}
	for i, target := range p.targets {
		colour := colours[i%len(colours)]
		p.line(b, p.points[target], colour, "", func(at point) float64 { return at.p50 })
		p.line(b, p.points[target], colour, ` stroke-dasharray="5 4"`, func(at point) float64 { return at.p99 })
		y := float64(plotHeight + legendLine*i)
		fmt.Fprintf(b, `<path d="M%d %.1fh20" stroke="%s" stroke-width="2"/>`+"\n", marginLeft, y-4, colour)
		text(marginLeft+26, y, "start", target+", p50; dashed: p99")
	}
}

// line draws one figure of a target, in the order of the loads.
func (p *plot) line(b *strings.Builder, points []point, colour, dash string, of func(point) float64) {
	var path strings.Builder
	for i, at := range points {
		x, y := p.at(at.rate, of(at))
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x, y)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, colour)
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", &path, colour, dash)
}
