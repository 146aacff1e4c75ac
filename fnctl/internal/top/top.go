// SPDX-License-Identifier: Apache-2.0

// Package top shows what a gateway does now, as lines for a terminal: rate, durations, pods and queue of
// each function, and the last failures.
package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/krm-function-runner/function-runner/fnctl/internal/pods"
	gatewayv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/gateway/v1"
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/libs/phase"
)

// Snapshot is what the gateway reports at one time.
type Snapshot struct {
	Status *gatewayv1.GetStatusResponse
	Pools  []*podmanagerv1.Pool
	// Failures are the last evaluations that failed, the newest first.
	Failures []*gatewayv1.Evaluation
	// Problems are why something is not known, or not known any more.
	Problems []string
	Now      time.Time
}

// row is what one function does.
type row struct {
	function   string
	rate, fail float64
	p50, p99   time.Duration
	measured   bool // whether there were evaluations in the last minute
	ready      int
	pods       int
	waiting    int
}

// rows returns the functions, the busiest first.
func (s Snapshot) rows() []*row {
	byName := map[string]*row{}
	of := func(name string) *row {
		if byName[name] == nil {
			byName[name] = &row{function: name}
		}
		return byName[name]
	}
	for _, f := range s.Status.GetFunctions() {
		r := of(f.GetImage())
		r.rate, r.fail, r.measured = f.GetRate(), f.GetFailedRate(), true
		r.p50, r.p99 = f.GetMedian().AsDuration(), f.GetP99().AsDuration()
	}
	for _, pool := range s.Pools {
		of(pods.Base(pool.GetKey().GetReference())).add(pool)
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.waiting, a.waiting), cmp.Compare(b.rate, a.rate), cmp.Compare(a.function, b.function))
	})
}

// add adds the pods and waiting leases of a pool.
func (r *row) add(pool *podmanagerv1.Pool) {
	r.waiting += int(pool.GetWaiting())
	r.pods += len(pool.GetPods())
	for _, pod := range pool.GetPods() {
		if pod.GetState() == podmanagerv1.Pod_STATE_READY {
			r.ready++
		}
	}
}

// summary returns the lines above the table.
func (s Snapshot) summary() []string {
	rate, fail := 0.0, 0.0
	for _, f := range s.Status.GetFunctions() {
		rate, fail = rate+f.GetRate(), fail+f.GetFailedRate()
	}
	up := s.Now.Sub(s.Status.GetStartTime().AsTime())
	return append([]string{
		fmt.Sprintf("gateway %s, version %s, up %s", s.Status.GetReplica(), s.Status.GetVersion(), pods.Short(up)),
		fmt.Sprintf("here, last minute: %s evals/s, %s failed/s; now: %s", number(rate), number(fail),
			cmp.Or(strings.Join(phase.Counts(s.Status.GetActive()), ", "), "none")),
	}, s.Problems...)
}
