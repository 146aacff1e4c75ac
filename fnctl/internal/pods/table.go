// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Row is a line of the table: a pod, or a pool without pods.
type Row struct {
	Pool, Pod, State, Load, Waiting, Age, TTL, Node, Reason string
}

// Header names the columns.
var Header = Row{
	Pool: "POOL", Pod: "POD", State: "STATE", Load: "LOAD", Waiting: "WAITING", Age: "AGE", TTL: "TTL", Node: "NODE",
	Reason: "REASON",
}

// states are the displayed states of pods.
var states = map[podmanagerv1.Pod_State]string{
	podmanagerv1.Pod_STATE_STARTING: "Starting",
	podmanagerv1.Pod_STATE_READY:    "Ready",
	podmanagerv1.Pod_STATE_DRAINING: "Draining",
	podmanagerv1.Pod_STATE_FAILED:   "Failed",
	podmanagerv1.Pod_STATE_DELETING: "Deleting",
}

// Rows returns the current rows of a pool.
func Rows(pool *podmanagerv1.Pool, now time.Time) []Row {
	name, waiting := pool.GetKey().GetReference(), strconv.Itoa(int(pool.GetWaiting()))
	if len(pool.GetPods()) == 0 {
		return []Row{{Pool: name, State: empty(pool), Waiting: waiting, Reason: pool.GetLastFailure()}}
	}
	var rows []Row
	for _, pod := range pool.GetPods() {
		row := Row{
			Pool: name, Pod: pod.GetName(), State: states[pod.GetState()], Waiting: waiting,
			Load: fmt.Sprintf("%d/%d", pod.GetActive(), pool.GetLimits().GetMaxConcurrency()),
			Age:  since(pod.GetCreateTime(), now), TTL: left(pod, now), Node: pod.GetNode(), Reason: pod.GetReason(),
		}
		if pod.GetState() == podmanagerv1.Pod_STATE_STARTING {
			row.Reason = withReason(phases[pod.GetPhase()], pod.GetReason())
		}
		rows = append(rows, row)
	}
	return rows
}

// empty returns the state of a pool without pods.
func empty(pool *podmanagerv1.Pool) string {
	switch {
	case resolving(pool):
		return "Resolving"
	case pool.GetWaiting() > 0:
		return "Queued"
	}
	return ""
}

// resolving reports whether a pool holds leases that wait for their image to be resolved.
func resolving(pool *podmanagerv1.Pool) bool { return pool.GetKey().GetDigest() == "" }

// left returns the time until an unused pod expires.
func left(pod *podmanagerv1.Pod, now time.Time) string {
	switch {
	case pod.GetActive() > 0:
		return "in use"
	case pod.GetReclaimTime() == nil:
		return ""
	default:
		return Short(pod.GetReclaimTime().AsTime().Sub(now))
	}
}

func since(t *timestamppb.Timestamp, now time.Time) string {
	if t == nil {
		return ""
	}
	return Short(now.Sub(t.AsTime()))
}

// Short returns a duration in its one or two largest units, such as "3m5s"; a
// negative one is "0s".
func Short(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 10*60:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 3600:
		return fmt.Sprintf("%dm", s/60)
	case s < 24*3600:
		return fmt.Sprintf("%dh%dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
	}
}

// widths are the widths of columns; they only grow.
type widths [8]int

// cells returns the columns of a row; the last has no width.
func (r Row) cells() (aligned [8]string, last string) {
	return [8]string{r.Pool, r.Pod, r.State, r.Load, r.Waiting, r.Age, r.TTL, r.Node}, r.Reason
}

// Table formats rows.
type Table struct{ widths widths }

// Fit makes the columns wide enough for a row.
func (t *Table) Fit(r Row) {
	cells, _ := r.cells()
	for i, c := range cells {
		t.widths[i] = max(t.widths[i], len(c), 1)
	}
}

// Line returns a row as a line. Empty cells become dashes.
func (t *Table) Line(r Row) string {
	t.Fit(r)
	cells, last := r.cells()
	var b strings.Builder
	for i, c := range cells {
		if c == "" {
			c = "-"
		}
		fmt.Fprintf(&b, "%-*s  ", t.widths[i], c)
	}
	b.WriteString(last)
	return strings.TrimRight(b.String(), " ")
}
