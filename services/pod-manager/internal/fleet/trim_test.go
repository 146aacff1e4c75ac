// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"testing"
	"time"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/manager"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// configure changes the settings of all replicas, and of later ones.
func (w *world) configure(change func(*manager.Settings)) {
	w.mu.Lock()
	w.changes = append(w.changes, change)
	replicas := w.replicas
	w.mu.Unlock()
	for _, r := range replicas {
		r.Configure(change)
	}
}

// TestTrimmingSparesPodsInUseElsewhere is row 3: callers do not reach the owner of their function,
// so another replica lends its pods; the owner has a reason to delete some.
func TestTrimmingSparesPodsInUseElsewhere(t *testing.T) {
	tests := map[string]struct {
		because string
		happens func(w *world)
	}{
		"lower limit": {"two pods are more than the limit", func(w *world) {
			w.configure(func(s *manager.Settings) { s.Defaults.MaxPods = 1 })
		}},
		"template": {"both pods are outdated", func(w *world) {
			next := podspec.Default(podspec.Defaults{WrapperImage: "example.com/wrapper:v2"})
			w.configure(func(s *manager.Settings) { s.Template = next })
		}},
		"sick pod": {"a pod is drained, and is in use no more", func(w *world) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, p := range w.pods {
				p.silent = true
				return
			}
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := usual()
			s.Limits.MaxWaitlistLength = 1
			simulate(t, s, func(w *world) {
				w.load(1, time.Second, 8*time.Second, 30*time.Second) // eight callers at a time: two pods
				w.owner(image(0)).silent.Store(true)
				w.load(1, time.Second, 8*time.Second, 30*time.Second)
				tc.happens(w)
				w.load(1, time.Second, 8*time.Second, 3*time.Minute)
				for _, d := range w.inUse() {
					t.Errorf("%s: after %s %s deleted %s, which holds %d leases", tc.because, d.at, d.by, d.pod, d.leases)
				}
				for _, r := range w.replicas {
					r.silent.Store(false)
				}
				wait(5 * time.Minute)
				if n := len(w.server.Pods()); n > 0 {
					t.Errorf("%s, and %d pods are left in the end", tc.because, n)
				}
			})
		})
	}
}
