// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestReplicaThatJoinsDeletesNothingAtOnce: the owners until now have not heard of it yet.
func TestReplicaThatJoinsDeletesNothingAtOnce(t *testing.T) {
	t.Parallel()
	mine := pool.OwnersChanged{Owner: func(pool.Function) pool.Owner { return pool.Owner{Mine: true} }, Replicas: 2}
	for name, seen := range map[string]bool{"before it joins": true, "after that": false} {
		m, f, now := pool.New(newPlayer(behaviour{}).configured()), function("f"), start
		observe := func() { answerAll(m, now, m.Handle(now, observed("f-1", f, 1, start.Add(-2*time.Hour)))) }
		if seen {
			observe()
		}
		m.Handle(now, mine)
		if !seen {
			observe()
		}
		var deleted time.Duration
		for ; deleted == 0 && now.Sub(start) < time.Minute; now = now.Add(time.Second) {
			for _, a := range m.Handle(now, pool.Tick{}) {
				if _, ok := a.(pool.Delete); ok {
					deleted = now.Sub(start)
				}
			}
		}
		if deleted < 6*time.Second {
			t.Errorf("an expired pod seen %s is deleted after %v, want six seconds or more", name, deleted)
		}
	}
}
