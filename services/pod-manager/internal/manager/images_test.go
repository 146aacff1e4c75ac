// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// TestOwnerThatWasNeverAskedReplacesOutdatedPods has only callers of another replica use a pod of another template. The
// owner's new pod runs the image's command.
func TestOwnerThatWasNeverAskedReplacesOutdatedPods(t *testing.T) {
	for name, tc := range map[string]struct {
		reference string
		created   int
	}{
		"found":     {"fn:v1", 1},
		"moved tag": {"moved:v1", 1},
		"not found": {"bad:v1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &cluster{}
				m := start(t, c, resolver{takes: time.Second})
				m.Handle(pool.OwnersChanged{Replicas: 2, Owner: func(pool.Function) pool.Owner { return pool.Owner{Mine: true} }})
				<-time.After(2 * time.Second)
				o := pool.Observation{
					Name: "fn-1", UID: "uid-0", ResourceVersion: "1", Slot: 1, TemplateVersion: "former",
					Function: pool.Function{Reference: tc.reference, Digest: "sha256:01"}, Created: time.Now().Add(-time.Hour),
					Phase: pool.PhaseConnecting, Address: "10.0.0.9:9446", ReclaimAfter: time.Now().Add(time.Hour),
				}
				m.Handle(pool.PodObserved{Observation: o})
				<-time.After(2 * time.Minute)
				o.ResourceVersion = "2"
				o.ReclaimAfter = time.Now().Add(time.Hour) // another replica uses it
				m.Handle(pool.PodObserved{Observation: o})
				<-time.After(30 * time.Second)
				c.mu.Lock()
				defer c.mu.Unlock()
				if len(c.requests) != tc.created {
					t.Fatalf("%d pods are created, want %d", len(c.requests), tc.created)
				}
				for _, what := range c.requests {
					if got := what.Function; got.Digest != "sha256:01" || len(got.Command) != 1 || got.Command[0] != "/fn" {
						t.Errorf("the new pod runs %+v, want the image's command", got)
					}
				}
			})
		})
	}
}
