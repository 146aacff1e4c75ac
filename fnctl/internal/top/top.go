// SPDX-License-Identifier: Apache-2.0

// Package top is the command fnctl top, which shows a gateway's current rates, durations, pods, queues and
// failures. command.go queries the gateway, and top.go formats the answers.
package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/evalphase"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Snapshot is the gateway's activity at a point in time, as fnctl top shows it.
type Snapshot struct {
	Status *gatewayv1.GetStatusResponse
	Pools  []*podmanagerv1.Pool
	// Failures are the last failed evaluations, the newest first. Equal failures are shown together.
	Failures []*gatewayv1.Evaluation
	// Problems describe parts of the snapshot that are missing or out of date, with the reasons.
	Problems []string
	Now      time.Time
}

type row struct {
	function        string
	rate            float64
	failed, samples int // counts of the last minute
	p50, p99        time.Duration
	ready           int
	pods            int
	waiting         int
}

// rows returns a table row for each function. Functions with waiting evaluations are first, then functions with
// failures, then the busiest functions. The argument name is a function that shortens image names.
func (s Snapshot) rows(name func(string) string) []*row {
	byName := map[string]*row{}
	of := func(name string) *row {
		if byName[name] == nil {
			byName[name] = &row{function: name}
		}
		return byName[name]
	}
	for _, f := range s.Status.GetFunctions() {
		r := of(f.GetImage())
		r.rate, r.failed, r.samples = f.GetRate(), evalphase.Failed(f), max(int(f.GetSamples()), 1)
		r.p50, r.p99 = f.GetMedian().AsDuration(), f.GetP99().AsDuration()
	}
	for _, pool := range s.Pools {
		r := of(name(pool.GetKey().GetReference()))
		r.waiting += int(pool.GetWaiting())
		r.pods += len(pool.GetPods())
		r.ready += evalphase.Ready(pool)
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.waiting, a.waiting), cmp.Compare(b.failed, a.failed), cmp.Compare(b.rate, a.rate),
			cmp.Compare(a.function, b.function))
	})
}

// summary returns the lines above the table, about the gateway, its total rate and its problems.
func (s Snapshot) summary() []string {
	rate, failed, samples := 0.0, 0, 0
	for _, f := range s.Status.GetFunctions() {
		rate += f.GetRate()
		failed += evalphase.Failed(f)
		samples += int(f.GetSamples())
	}
	up := s.Now.Sub(s.Status.GetStartTime().AsTime())
	lines := []string{
		fmt.Sprintf("gateway %s, version %s, up %s", s.Status.GetReplica(), s.Status.GetVersion(), evalphase.Short(up)),
		fmt.Sprintf("here, last minute: %s evals/s, %d of %d failed; now: %s", number(rate), failed, samples,
			cmp.Or(strings.Join(evalphase.Counts(s.Status.GetActive()), ", "), "none")),
	}
	for _, problem := range slices.Concat(s.Problems, s.Status.GetProblems(), evalphase.PoolProblems(s.Pools)) {
		lines = append(lines, "! "+problem)
	}
	return lines
}

const (
	// usualWidth is the number of columns if the output is not a terminal.
	usualWidth = 80
	// minName is the minimum width of the column with function names. All other columns have a fixed width.
	minName = 12
	fixed   = len("  EVALS/S      FAILED      P50      P99   PODS  QUEUE")
)

// Lines returns the snapshot as at most height lines, each shorter than width. A width of zero means 80 columns,
// and a height of zero means no limit.
func (s Snapshot) Lines(width, height int) []string {
	width = cmp.Or(width, usualWidth) - 1
	name := evalphase.ShortNames(s.Status, s.Pools, s.Failures)
	lines := slices.Concat(s.summary(), s.waiting(name), s.failures(name))
	columns := max(width-fixed, minName)
	lines = append(lines, "", fmt.Sprintf("%-*s  %7s  %10s  %7s  %7s  %5s  %5s",
		columns, "FUNCTION", "EVALS/S", "FAILED", "P50", "P99", "PODS", "QUEUE"))
	var rows []string
	for _, r := range s.rows(name) {
		rows = append(rows, r.line(columns))
	}
	if len(rows) == 0 {
		rows = []string{"no evaluations in the last minute, and no function pods"}
	}
	if height > 0 {
		lines = append(lines, atMost(max(height-len(lines)-1, 1), rows)...)
		lines = lines[:min(len(lines), height)]
	} else {
		lines = append(lines, rows...)
	}
	for i, line := range lines {
		lines[i] = runewidth.Truncate(ui.OneLine(line), width, "…")
	}
	return lines
}

// line returns a row of the table. The argument name is the width of the first column, which contains function names.
func (r row) line(name int) string {
	function := runewidth.FillRight(runewidth.Truncate(ui.OneLine(r.function), name, "…"), name)
	rate, failed, p50, p99, podCount, queue := "-", "-", "-", "-", "-", "-"
	if r.samples > 0 {
		rate, failed = number(r.rate), fmt.Sprintf("%d of %d", r.failed, r.samples)
		p50, p99 = evalphase.Took(r.p50), evalphase.Took(r.p99)
	}
	if r.pods > 0 {
		podCount = fmt.Sprintf("%d/%d", r.ready, r.pods)
	}
	if r.pods > 0 || r.waiting > 0 {
		queue = strconv.Itoa(r.waiting)
	}
	return fmt.Sprintf("%s  %7s  %10s  %7s  %7s  %5s  %5s", function, rate, failed, p50, p99, podCount, queue)
}

// The maximum numbers of lines in fnctl top about waiting evaluations, and about failures.
const (
	maxWaiting  = 5
	maxFailures = 5
)

// atMost returns the first n lines. If it omits lines, it adds a line with the number of omitted lines.
func atMost(n int, lines []string) []string {
	if left := len(lines) - n; left > 0 {
		return append(lines[:n], fmt.Sprintf("… and %d more", left))
	}
	return lines
}

// waiting returns the lines about waiting evaluations. The argument name is a function that shortens image names.
func (s Snapshot) waiting(name func(string) string) []string {
	all := s.Status.GetWaiting()
	if len(all) == 0 {
		return nil
	}
	var lines []string
	for _, w := range all {
		text := fmt.Sprintf("%6d  %s  %s for %s: %s", w.GetCount(), cmp.Or(name(w.GetImage()), "-"), w.GetPhase(),
			evalphase.Short(w.GetLongest().AsDuration()), w.GetReason())
		lines = append(lines, strings.TrimSuffix(text, ": "))
	}
	return append([]string{"", "WAITING HERE"}, atMost(maxWaiting, lines)...)
}

// failures returns the lines about the last failures. Equal failures share a line.
func (s Snapshot) failures(name func(string) string) []string {
	groups := evalphase.GroupFailures(s.Failures)
	if len(groups) == 0 {
		return nil
	}
	var lines []string
	for _, f := range groups {
		e := f.Last
		ago := evalphase.Short(s.Now.Sub(e.GetStartTime().AsTime().Add(e.GetDuration().AsDuration())))
		fault := cmp.Or(e.GetFault(), "-") // older gateways do not report the fault
		lines = append(lines, fmt.Sprintf("%6d  %s  %s: %s: %s (%s ago)", f.Count,
			cmp.Or(name(evalphase.Image(e)), "(rejected)"), fault, e.GetCode(), e.GetReason(), ago))
	}
	return append([]string{"", "LAST FAILURES HERE"}, atMost(maxFailures, lines)...)
}

// number returns a rate with about three digits.
func number(n float64) string {
	switch {
	case n == 0:
		return "0"
	case n < 10:
		return strconv.FormatFloat(n, 'f', 2, 64)
	case n < 100:
		return strconv.FormatFloat(n, 'f', 1, 64)
	default:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
}
