// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestReplicaIsCutOffUntilAPodAnswers: it shows nothing that the silent pods are gone, if newer ones are silent too.
func TestReplicaIsCutOffUntilAPodAnswers(t *testing.T) {
	t.Parallel()
	m, now := pool.New(newPlayer(behaviour{}).configured()), start
	cutOff, answers := false, false
	var handle func(event pool.Event)
	handle = func(event pool.Event) {
		for _, action := range m.Handle(now, event) {
			switch a := action.(type) {
			case pool.StandDown:
				cutOff = a.Reason != ""
			case pool.Probe:
				if answers {
					handle(pool.Probed{Name: a.Name, UID: a.UID, Question: a.Question})
				} else {
					handle(pool.Unanswered{Name: a.Name, UID: a.UID, Question: a.Question})
				}
			}
		}
	}
	pass := func(seconds int) {
		for range seconds {
			now = now.Add(time.Second)
			handle(pool.Tick{})
		}
	}
	see := func(functions string) {
		for _, name := range strings.Fields(functions) {
			handle(observed(name+"-1", function(name), 1, now))
		}
	}
	see("f g")
	if pass(4); !cutOff {
		t.Fatal("two silent pods do not show that the replica is cut off")
	}
	see("h i")
	handle(pool.PodGone{Name: "f-1", UID: "f-1"})
	handle(pool.PodGone{Name: "g-1", UID: "g-1"})
	for range 4 {
		if pass(1); !cutOff {
			t.Fatal("the replica counts as reachable, although no pod has answered")
		}
	}
	answers = true
	see("k")
	if pass(1); cutOff {
		t.Error("the replica counts as cut off, although a pod has answered")
	}
}
