// SPDX-License-Identifier: Apache-2.0

package manager

import "testing"

// TestLeasesOnKnownPodsMakeNoTimer has callers come when all pods are known: each warm lease passes this check.
func TestLeasesOnKnownPodsMakeNoTimer(t *testing.T) {
	synced, ctx := make(chan struct{}), t.Context()
	close(synced)
	m := &Manager{Inbox: NewInbox(), config: Config{Synced: synced, Obstacle: func() error { return nil }}}
	allocations := testing.AllocsPerRun(100, func() {
		if err := m.awaitSync(ctx, ignoreReports); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 0 {
		t.Errorf("a lease allocates %.0f objects before its request, want none", allocations)
	}
}
