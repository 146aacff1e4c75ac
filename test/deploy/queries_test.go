// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// outcomeLabels are the labels with the outcome of evaluations and cold starts: "ok", or the class
// of the error.
var outcomeLabels = map[string]string{"fn_evaluations_total": "code", "fn_cold_starts_total": "outcome"}

// checkOutcomes finds filters for outcomes that do not exist.
func checkOutcomes(t *testing.T, where string, expression metricsql.Expr) {
	t.Helper()
	outcomes := []string{"ok"}
	for class := fault.Internal; class <= fault.Unimplemented; class++ {
		outcomes = append(outcomes, class.String())
	}
	metricsql.VisitAll(expression, func(e metricsql.Expr) {
		m, ok := e.(*metricsql.MetricExpr)
		if !ok {
			return
		}
		for _, filter := range slices.Concat(m.LabelFilterss...) {
			if label, ok := outcomeLabels[m.LabelFilterss[0][0].Value]; !ok || filter.Label != label {
				continue
			}
			for value := range strings.SplitSeq(filter.Value, "|") {
				if !slices.Contains(outcomes, value) {
					t.Errorf("%s filters by %s %q, but the values are %v", where, filter.Label, value, outcomes)
				}
			}
		}
	})
}

// wholes are metrics that each replica reports for the whole system: their sum over replicas means
// nothing.
var wholes = []string{"fn_pods", "fn_pull_secret_in_step"}

// eachReplica reports whether an expression has a series of such a metric for each replica. Adding
// those up is an error.
func eachReplica(e metricsql.Expr) (bool, error) {
	var parts []metricsql.Expr
	switch e := e.(type) {
	case *metricsql.MetricExpr:
		return slices.Contains(wholes, e.LabelFilterss[0][0].Value), nil
	case *metricsql.RollupExpr:
		parts = []metricsql.Expr{e.Expr}
	case *metricsql.FuncExpr:
		parts = e.Args
	case *metricsql.BinaryOpExpr:
		parts = []metricsql.Expr{e.Left, e.Right}
	case *metricsql.AggrFuncExpr:
		parts = e.Args
	}
	var replicas bool
	for _, part := range parts {
		has, err := eachReplica(part)
		if err != nil {
			return false, err
		}
		replicas = replicas || has
	}
	aggregate, ok := e.(*metricsql.AggrFuncExpr)
	if !replicas || !ok || strings.EqualFold(aggregate.Modifier.Op, "without") {
		return replicas, nil // the labels removed below never distinguish replicas
	}
	if aggregate.Name != "max" && aggregate.Name != "min" {
		return false, fmt.Errorf("%s counts once for each replica what each of them reports as a whole",
			aggregate.AppendString(nil))
	}
	return false, nil
}

func TestWholesAreNotAddedUp(t *testing.T) {
	for query, want := range map[string]bool{
		"sum by (state) (fn_pods)":                         false,
		"sum(fn_pods)":                                     false,
		"sum(max_over_time(fn_pods[5m])) > 3":              false,
		"max by (state) (sum by (state) (fn_pods))":        false,
		"max by (state) (sum without (image) (fn_pods))":   true,
		"sum by (state) (max by (image, state) (fn_pods))": true,
		"sum(fn_queue_depth)":                              true, // each lease waits at one replica
	} {
		expression, err := metricsql.Parse(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := eachReplica(expression); (err == nil) != want {
			t.Errorf("%s: %v", query, err)
		}
	}
}
