// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pipeline"
	"github.com/krm-function-runner/function-runner/fnctl/internal/pkgtree"
	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
)

var escape = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// TestProgressFits shows functions with long and wide names on terminals of all widths: each state of
// a line must fit, or it cannot be replaced.
func TestProgressFits(t *testing.T) {
	for _, image := range []string{
		"fn:v1", "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5", strings.Repeat("例", 60),
		"example.com/関数/名前空間を設定する:v1", strings.Repeat("👩‍👩‍👧", 20), strings.Repeat("e\u0301", 90),
	} {
		for width := 20; width <= 200; width++ {
			var out bytes.Buffer
			p := &ui.Progress{Printer: ui.NewPrinter(&out, true), Live: true, Width: func() int { return width }}
			call := pipeline.Call{Function: kptfile.Function{Image: image}}
			p.Entered(&pipeline.Plan{
				Package:  &pkgtree.Package{Path: strings.Repeat("ディレクトリ/", 9), Kptfile: &kptfile.Kptfile{Name: image}},
				Mutators: []pipeline.Call{call},
			})
			p.Started(call, 12345)
			p.Waiting("")
			p.Waiting("pod set-namespace-v045-0: ノードを待っています (0/3 nodes are available)")
			p.Waiting("pod: pulling images")
			p.Finished(call, pipeline.Outcome{Elapsed: 1234 * time.Millisecond})
			for line := range strings.FieldsFuncSeq(escape.ReplaceAllString(out.String(), ""), func(r rune) bool {
				return r == '\r' || r == '\n'
			}) {
				if got := (&runewidth.Condition{StrictEmojiNeutral: true}).StringWidth(line); got >= width {
					t.Errorf("%d columns on a terminal of %d: %q", got, width, line)
				}
			}
		}
	}
}

// TestNamesKeepTheirEnd cuts an image: its function is at the end.
func TestNamesKeepTheirEnd(t *testing.T) {
	var out bytes.Buffer
	p := &ui.Progress{Printer: ui.NewPrinter(&out, false), Width: func() int { return 40 }}
	call := pipeline.Call{Function: kptfile.Function{Image: "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"}}
	p.Finished(call, pipeline.Outcome{Elapsed: 12 * time.Millisecond})
	if got := out.String(); !strings.Contains(got, "set-namespace:v0.4.5 12ms") {
		t.Errorf("shown %q, want the end of the image", got)
	}
}
