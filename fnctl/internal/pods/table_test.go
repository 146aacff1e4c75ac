// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-runewidth"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pods"
)

var rowsOfPods = []pods.Row{
	pods.Header,
	{
		Pool: "ghcr.io/kptdev/krm-functions-catalog/apply-replacements:v0.1.5", Pod: "apply-replacements-v015-0-1a2b3c4d",
		State: "Starting", Load: "1/4", Waiting: "12", Age: "1h12m", TTL: "in use", Node: "worker-1.example.com",
		Owner:  "pod-manager-1",
		Reason: "pulling images (Back-off pulling image, which is a long story that goes on for more than one line)",
	},
	{Pool: "example.com/fns/cold:v2", State: "Queued", Waiting: "2"},
}

// TestNarrowTable shows pods on a terminal of 80 columns, with the reasons on lines of their own.
func TestNarrowTable(t *testing.T) {
	want := `POD                                 STATE     LOAD  WAITING  AGE    TTL
apply-replacements-v015-0-1a2b3c4d  Starting  1/4   12       1h12m  in use
    pulling images (Back-off pulling image, which is a long story that goes on
    for more than one line)
cold:v2                             Queued    -     2        -      -`
	if diff := cmp.Diff(want, format(&pods.Table{Width: 80})); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if whole := format(&pods.Table{}); !strings.Contains(whole, "goes on for more than one line)") {
		t.Errorf("what is no terminal got\n%s\nwant the reason on one line", whole)
	}
}

// TestTableFitsTheTerminal has a reason of thousands of words, one without spaces, and one in wide characters.
func TestTableFitsTheTerminal(t *testing.T) {
	rows := slices.Clone(rowsOfPods)
	for _, reason := range []string{strings.Repeat("word ", 5000), strings.Repeat("x", 500), strings.Repeat("理由", 200)} {
		rows = append(rows, pods.Row{Pod: "fn-" + strings.Repeat("long-", 20), State: "Failed", Reason: reason})
	}
	for _, width := range []int{50, 60, 80, 200} {
		lines := format(&pods.Table{Width: width}, rows...)
		for line := range strings.Lines(lines) {
			if n := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns on a terminal of %d: %q", n, width, line)
			}
		}
		if n := strings.Count(lines, "\n    "); n > 3*len(rows) || strings.Count(lines, "…") < 2 {
			t.Errorf("%d lines of reasons on a terminal of %d, want three for each, and a mark of what is left out:\n%s",
				n, width, lines)
		}
	}
}

func TestWideTable(t *testing.T) {
	got := format(&pods.Table{Wide: true, Width: 80})
	for _, want := range []string{
		"POOL ", "NODE", "OWNER", "REASON", "worker-1.example.com  pod-manager-1  pulling images",
		"example.com/fns/cold:v2",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("table\n%s\nlacks %q", got, want)
		}
	}
	if n := strings.Count(got, "\n"); n != 2 {
		t.Errorf("table has %d lines, want one for each row:\n%s", n+1, got)
	}
}

func format(table *pods.Table, rows ...pods.Row) string {
	if rows == nil {
		rows = rowsOfPods
	}
	for _, row := range rows {
		table.Fit(row)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, table.Lines(row)...)
	}
	return strings.Join(lines, "\n")
}
