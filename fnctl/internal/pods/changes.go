package pods

import (
	"time"

	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
)

// Changes finds out which rows a change of a pool is worth showing: those that say
// something new. The zero Changes is ready to use.
type Changes struct {
	shown map[key]map[string]Row // by the pod's name
}

// Of returns the rows to show for a change. A pod that is no more is shown once, with
// the state "Gone".
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

// replace makes rows those of a pool, and returns what is new.
func (c *Changes) replace(k key, rows []Row) []Row {
	before, after := c.shown[k], map[string]Row{}
	var news []Row
	for _, row := range rows {
		after[row.Pod] = row
		if old, ok := before[row.Pod]; !ok || old.timeless() != row.timeless() {
			news = append(news, row)
		}
	}
	for name, row := range before {
		if _, ok := after[name]; !ok && name != "" {
			news = append(news, Row{Pool: row.Pool, Pod: name, State: "Gone", Node: row.Node})
		}
	}
	c.shown[k] = after
	if rows == nil {
		delete(c.shown, k)
	}
	return news
}

// timeless returns the row without what changes by itself.
func (r Row) timeless() Row {
	r.Age, r.TTL = "", ""
	return r
}
