// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Report contains the results of a measurement.
type Report struct {
	Machine Machine `json:"machine"`
	Image   string  `json:"image"`
	Seed    uint64  `json:"seed"`
	Levels  []Level `json:"levels"`
}

// Level contains the measurements of all targets with the same input and the same load.
type Level struct {
	Input string `json:"input"`
	Bytes int    `json:"bytes"`
	// Callers is the number of callers in a closed loop. Rate is the number of evaluations per second in an open loop.
	Callers int     `json:"callers,omitempty"`
	Rate    float64 `json:"rate,omitempty"`
	Rounds  int     `json:"rounds"`
	// Different lists targets whose output differs from the first target's output. It may be meaningless to compare the
	// results of these targets with the first target's results.
	Different []string `json:"different,omitempty"`
	Results   []Result `json:"results"`
}

// Result contains the measurements of a target. The ratios compare the target with the first target.
type Result struct {
	Target      string `json:"target"`
	Evaluations int64  `json:"evaluations"`
	Failed      int64  `json:"failed"`
	// Failure is the error of the last failed evaluation.
	Failure   string  `json:"failure,omitempty"`
	PerSecond float64 `json:"perSecond"`
	// ClientMilliseconds is loadgen's own processor time per evaluation. It is zero if the system does not report it.
	ClientMilliseconds float64 `json:"clientMilliseconds,omitempty"`
	// Milliseconds and the ratios are nil if all evaluations failed. The first target has no ratios to itself.
	Milliseconds   *Latencies `json:"milliseconds,omitempty"`
	PerSecondRatio *Ratio     `json:"perSecondRatio,omitempty"`
	P50Ratio       *Ratio     `json:"p50Ratio,omitempty"`
	P99Ratio       *Ratio     `json:"p99Ratio,omitempty"`
	MeanRatio      *Ratio     `json:"meanRatio,omitempty"`
}

// Latencies contains the latencies of successful evaluations in milliseconds.
type Latencies struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Text returns the report as text, with a line about the machine and a Markdown table.
func (r Report) Text() string {
	head := []string{"input", "load", "target", "evaluations", "failed", "per second", "client", "p50", "p99", "max"}
	if len(r.Levels) > 0 && len(r.Levels[0].Results) > 1 {
		over := "over " + r.Levels[0].Results[0].Target
		head = append(head, "per second "+over, "p50 "+over, "p99 "+over)
	}
	rows := [][]string{head}
	for _, level := range r.Levels {
		for _, result := range level.Results {
			rows = append(rows, level.formatRow(result))
		}
	}
	return fmt.Sprintf("%s, of %s.\n\n%s", r.Machine, r.Image, formatTable(rows))
}

func (l Level) formatRow(result Result) []string {
	row := []string{
		l.Input, Load{l.Callers, l.Rate}.String(), result.Target,
		strconv.FormatInt(result.Evaluations, 10), strconv.FormatInt(result.Failed, 10),
		fmt.Sprintf("%.1f", result.PerSecond), "",
	}
	if result.ClientMilliseconds > 0 {
		row[len(row)-1] = formatMilliseconds(result.ClientMilliseconds)
	}
	if ms := result.Milliseconds; ms != nil {
		row = append(row, formatMilliseconds(ms.P50), formatMilliseconds(ms.P99), formatMilliseconds(ms.Max))
	} else {
		row = append(row, "", "", "")
	}
	if len(l.Results) > 1 {
		row = append(row, result.PerSecondRatio.String(), result.P50Ratio.String(), result.P99Ratio.String())
	}
	return row
}

// formatMilliseconds formats a time with about three significant digits.
func formatMilliseconds(ms float64) string { return fmt.Sprintf("%.*f ms", decimalsOf(ms), ms) }

// decimalsOf returns the number of decimals with which a number has about three significant digits.
func decimalsOf(figure float64) int {
	switch {
	case figure < 10:
		return 2
	case figure < 100:
		return 1
	}
	return 0
}

// String returns the ratio with its confidence interval. It returns an empty string if r is nil.
func (r *Ratio) String() string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Value, r.Low, r.High)
}

// formatTable formats rows as an aligned Markdown table. The first row is the header. Shorter rows get empty cells.
func formatTable(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	writeRow(&b, rows[0], widths)
	rule := slices.Clone(rows[0])
	for i, width := range widths {
		rule[i] = strings.Repeat("-", width)
	}
	writeRow(&b, rule, widths)
	for _, row := range rows[1:] {
		writeRow(&b, row, widths)
	}
	return b.String()
}

func writeRow(b *strings.Builder, row []string, widths []int) {
	for i, width := range widths {
		cell := ""
		if i < len(row) {
			cell = row[i]
		}
		fmt.Fprintf(b, "| %-*s ", width, cell)
	}
	b.WriteString("|\n")
}
