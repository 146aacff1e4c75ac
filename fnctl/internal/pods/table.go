// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/krm-function-runner/function-runner/fnctl/internal/ui"
	"github.com/krm-function-runner/function-runner/libs/evalphase"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Row is a line of the table of function pods, for a pod or for a pool without pods.
type Row struct {
	Pool, Pod, State, Load, Waiting, Age, TTL, Node, Owner, Reason string
}

// Header names the columns.
var Header = Row{
	Pool: "POOL", Pod: "POD", State: "STATE", Load: "LOAD", Waiting: "WAITING", Age: "AGE", TTL: "TTL", Node: "NODE",
	Owner: "OWNER", Reason: "REASON",
}

var states = map[podmanagerv1.Pod_State]string{
	podmanagerv1.Pod_STATE_STARTING: "Starting",
	podmanagerv1.Pod_STATE_READY:    "Ready",
	podmanagerv1.Pod_STATE_DRAINING: "Draining",
	podmanagerv1.Pod_STATE_FAILED:   "Failed",
	podmanagerv1.Pod_STATE_DELETING: "Deleting",
}

// Rows returns a table row for each pod of a pool. A pool without pods has a single row.
func Rows(pool *podmanagerv1.Pool, now time.Time) []Row {
	name, waiting := pool.GetKey().GetReference(), strconv.Itoa(int(pool.GetWaiting()))
	if len(pool.GetPods()) == 0 {
		return []Row{{
			Pool: name, State: empty(pool), Waiting: waiting, Owner: pool.GetReplica(), Reason: pool.GetLastFailure(),
		}}
	}
	var rows []Row
	for _, pod := range pool.GetPods() {
		row := Row{
			Pool: name, Pod: pod.GetName(), State: states[pod.GetState()], Waiting: waiting,
			Load: fmt.Sprintf("%d/%d", pod.GetActive(), pool.GetLimits().GetMaxConcurrency()),
			Age:  since(pod.GetCreateTime(), now), TTL: remainingTTL(pod, now), Node: pod.GetNode(),
			Owner: pool.GetReplica(), Reason: pod.GetReason(),
		}
		if pod.GetState() == podmanagerv1.Pod_STATE_STARTING {
			row.Reason = evalphase.Describe(evalphase.Name(pod.GetPhase()))
			if pod.GetReason() != "" {
				row.Reason += " (" + pod.GetReason() + ")"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// empty returns the state of a pool without pods as text: Resolving, Queued, or an empty text if the pool is idle.
func empty(pool *podmanagerv1.Pool) string {
	switch {
	case pool.GetKey().GetDigest() == "":
		return "Resolving"
	case pool.GetWaiting() > 0:
		return "Queued"
	}
	return ""
}

// remainingTTL returns the time until an unused pod is deleted, as text. It is "in use" for a pod with evaluations.
func remainingTTL(pod *podmanagerv1.Pod, now time.Time) string {
	switch {
	case pod.GetActive() > 0:
		return "in use"
	case pod.GetReclaimTime() == nil:
		return ""
	default:
		return evalphase.Short(pod.GetReclaimTime().AsTime().Sub(now))
	}
}

func since(t *timestamppb.Timestamp, now time.Time) string {
	if t == nil {
		return ""
	}
	return evalphase.Short(now.Sub(t.AsTime()))
}

// Table formats rows.
type Table struct {
	// Wide selects a table with all columns and with the reason for a pod's state on the pod's line. The narrow table
	// shows the reason on separate lines. Its rows fit into 80 columns unless the pod's name is very long.
	Wide bool
	// Width is the width of the terminal. Long pod names and long reasons are cut to fit. 0 means no limit.
	Width int

	widths []int // widths of the columns, which never shrink
}

// cells returns a row in two parts: the cells to align in columns, and the reason for the pod's state.
func (t *Table) cells(r Row) (aligned []string, reason string) {
	if t.Wide {
		return []string{r.Pool, r.Pod, r.State, r.Load, r.Waiting, r.Age, r.TTL, r.Node, r.Owner}, r.Reason
	}
	aligned = []string{r.Pod, r.State, r.Load, r.Waiting, r.Age, r.TTL}
	if r.Pod == "" {
		aligned[0] = Base(r.Pool)
	}
	return aligned, r.Reason
}

// Base returns the last part of an image's name, without registry and directories.
func Base(image string) string { return image[strings.LastIndexByte(image, '/')+1:] }

// Fit widens the columns of the table so that they can contain a row.
func (t *Table) Fit(r Row) {
	cells, _ := t.cells(r)
	if t.widths == nil {
		t.widths = make([]int, len(cells))
	}
	for i, c := range cells {
		t.widths[i] = max(t.widths[i], len(c), 1)
	}
}

// Lines formats a row as lines of the table. Empty cells become dashes.
func (t *Table) Lines(r Row) []string {
	t.Fit(r)
	cells, reason := t.cells(r)
	var b strings.Builder
	for i, c := range cells {
		if c == "" {
			c = "-"
		}
		width := t.width(i)
		if len(c) > width {
			c = c[:width-1] + "~"
		}
		fmt.Fprintf(&b, "%-*s  ", width, c)
	}
	if t.Wide {
		b.WriteString(reason)
		reason = ""
	}
	lines := []string{strings.TrimRight(b.String(), " ")}
	if reason != "" && r != Header {
		lines = append(lines, t.reason(reason)...)
	}
	return lines
}

const (
	indent = "    "
	// maxReasonLines is the maximum number of lines for the reason of a pod's state, except in the wide table.
	maxReasonLines = 3
)

// reason wraps the reason for a pod's state to lines that fit the terminal.
func (t *Table) reason(text string) []string {
	text = ui.OneLine(text)
	if t.Width == 0 {
		return []string{indent + text}
	}
	width := max(t.Width-len(indent), minName)
	var lines []string
	for text != "" && len(lines) < maxReasonLines-1 {
		line := runewidth.Truncate(text, width, "")
		if space := strings.LastIndexByte(line, ' '); len(line) < len(text) && text[len(line)] != ' ' && space > 0 {
			line = line[:space]
		}
		lines = append(lines, indent+strings.TrimRight(line, " "))
		text = strings.TrimLeft(text[len(line):], " ")
	}
	if text != "" {
		lines = append(lines, indent+runewidth.Truncate(text, width, "…"))
	}
	return lines
}

// minName is the minimum width of the first column, which contains the names of pods.
const minName = 10

// width returns the width of a column. On a narrow terminal, the first column shrinks so that all columns fit.
func (t *Table) width(column int) int {
	if column > 0 || t.Wide || t.Width == 0 {
		return t.widths[column]
	}
	others := 0
	for _, w := range t.widths[1:] {
		others += len("  ") + w
	}
	return min(t.widths[0], max(t.Width-others, minName))
}
