// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestReplicaThatJoinsDeletesNothingAtOnce: the owners until now have not heard of it yet. A replica that is
// alone need not wait.
func TestReplicaThatJoinsDeletesNothingAtOnce(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seen     bool // before it joins
		replicas int
		after    time.Duration
	}{
		"seen before":        {true, 2, 6 * time.Second},
		"seen after":         {false, 2, 6 * time.Second},
		"seen before, alone": {true, 1, 0},
		"seen after, alone":  {false, 1, 0},
	} {
		mine := pool.OwnersChanged{
			Owner: func(pool.Function) pool.Owner { return pool.Owner{Mine: true} }, Replicas: tc.replicas,
		}
		m, f, now := pool.New(newPlayer(behaviour{}).configured()), function("f"), start
		observe := func() { answerAll(m, now, m.Handle(now, observed("f-1", f, 1, start.Add(-2*time.Hour)))) }
		if tc.seen {
			observe()
		}
		m.Handle(now, mine)
		if !tc.seen {
			observe()
		}
		deleted := time.Duration(-1)
		for ; deleted < 0 && now.Sub(start) < time.Minute; now = now.Add(time.Second) {
			for _, a := range m.Handle(now, pool.Tick{}) {
				if _, ok := a.(pool.Delete); ok {
					deleted = now.Sub(start)
				}
			}
		}
		if deleted < 0 || (deleted >= 6*time.Second) != (tc.after > 0) {
			t.Errorf("%s: an expired pod is deleted after %v, want %v or soon after that", name, deleted, tc.after)
		}
	}
}
