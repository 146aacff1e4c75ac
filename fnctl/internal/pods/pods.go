// SPDX-License-Identifier: Apache-2.0

// Package pods is the command fnctl pods, which shows the pods of each function and their changes. command.go queries
// the gateway, pods.go finds changes, and table.go formats the rows.
package pods

import (
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// key identifies a pool of function pods. digest is empty until the gateway has resolved the tag in reference.
type key struct{ reference, digest string }

func keyOf(k *podmanagerv1.PoolKey) key { return key{k.GetReference(), k.GetDigest()} }

// Changes determines the table rows to print after a change of a pool of function pods. The zero value is usable.
type Changes struct {
	shown map[key]map[string]Row // inner keys are names of pods
}

// Of returns the rows to print for a change of a pool. A deleted pod is shown once, with the state "Gone".
func (c *Changes) Of(change *podmanagerv1.WatchPoolsResponse, now time.Time) []Row {
	if c.shown == nil {
		c.shown = map[key]map[string]Row{}
	}
	if removed := change.GetRemoved(); removed != nil {
		return c.replace(keyOf(removed), nil)
	}
	if pool := change.GetPool(); pool != nil {
		return c.replace(keyOf(pool.GetKey()), Rows(pool, now))
	}
	return nil
}

// replace stores the current rows of a pool, and returns the rows that have changed since the last call.
func (c *Changes) replace(k key, rows []Row) []Row {
	before, after := c.shown[k], map[string]Row{}
	var changed []Row
	for _, row := range rows {
		after[row.Pod] = row
		if old, ok := before[row.Pod]; !ok || old.forComparison() != row.forComparison() {
			changed = append(changed, row)
		}
	}
	for name, row := range before {
		if _, ok := after[name]; !ok && name != "" {
			changed = append(changed, Row{Pool: row.Pool, Pod: name, State: "Gone", Node: row.Node})
		}
	}
	c.shown[k] = after
	if rows == nil {
		delete(c.shown, k)
	}
	return changed
}

// forComparison returns the row without the pod's age and remaining lifetime (TTL), which always change. It also omits
// the owner, which is unknown for a moment when another replica takes over.
func (r Row) forComparison() Row {
	r.Age, r.TTL, r.Owner = "", "", ""
	return r
}
