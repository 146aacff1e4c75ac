// SPDX-License-Identifier: Apache-2.0

// Package top shows a gateway's current activity, as lines for a terminal: rate, durations, pods and queue of
// each function, and the last failures.
package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/phase"
)

// Snapshot is the gateway's activity at a point in time.
type Snapshot struct {
	Status *gatewayv1.GetStatusResponse
	Pools  []*podmanagerv1.Pool
	// Failures are the last failed evaluations, the newest first. Equal failures are shown together.
	Failures []*gatewayv1.Evaluation
	// Problems are the reasons for which parts of the snapshot are missing or out of date.
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

// rows returns the functions: those with waiting leases or failures first, then the busiest.
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
		r.rate, r.failed, r.samples = f.GetRate(), phase.Failed(f), max(int(f.GetSamples()), 1)
		r.p50, r.p99 = f.GetMedian().AsDuration(), f.GetP99().AsDuration()
	}
	for _, pool := range s.Pools {
		r := of(name(pool.GetKey().GetReference()))
		r.waiting += int(pool.GetWaiting())
		r.pods += len(pool.GetPods())
		r.ready += phase.Ready(pool)
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.waiting, a.waiting), cmp.Compare(b.failed, a.failed), cmp.Compare(b.rate, a.rate),
			cmp.Compare(a.function, b.function))
	})
}

// summary returns the lines above the table.
func (s Snapshot) summary() []string {
	rate, failed, samples := 0.0, 0, 0
	for _, f := range s.Status.GetFunctions() {
		rate += f.GetRate()
		failed += phase.Failed(f)
		samples += int(f.GetSamples())
	}
	up := s.Now.Sub(s.Status.GetStartTime().AsTime())
	lines := []string{
		fmt.Sprintf("gateway %s, version %s, up %s", s.Status.GetReplica(), s.Status.GetVersion(), phase.Short(up)),
		fmt.Sprintf("here, last minute: %s evals/s, %d of %d failed; now: %s", number(rate), failed, samples,
			cmp.Or(strings.Join(phase.Counts(s.Status.GetActive()), ", "), "none")),
	}
	for _, problem := range slices.Concat(s.Problems, s.Status.GetProblems(), phase.PoolProblems(s.Pools)) {
		lines = append(lines, "! "+problem)
	}
	return lines
}
