package resourcelist_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

const (
	asBlocks = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n"
	asJSON   = `{"kind": "ResourceList", "items": []}`
)

// TestFullDecodesTakeTurns has lists come while others are being decoded.
func TestFullDecodesTakeTurns(t *testing.T) {
	large := asJSON + strings.Repeat(" ", 1<<20)
	tests := map[string]struct {
		reason   string
		occupied int64 // bytes
		list     string
		waits    bool
	}{
		"free":            {"nobody waits without need", 0, large, false},
		"as blocks":       {"a list that needs no full decode needs no turn", resourcelist.MaxDecoding, asBlocks, false},
		"many results":    {"results are decoded too", resourcelist.MaxDecoding, asBlocks + "results:\n" + strings.Repeat("- message: m\n", 1<<15), true},
		"small":           {"a small list takes a small turn", resourcelist.MaxDecoding - 1<<10, asJSON, false},
		"large":           {"large ones do not add up", resourcelist.MaxDecoding - 1<<10, large, true},
		"full":            {"there is a bound", resourcelist.MaxDecoding, asJSON, true},
		"giant":           {"one that is larger than all turns goes alone", 0, large + strings.Repeat(" ", resourcelist.MaxDecoding), false},
		"giant in a line": {"and after the others", 1, large + strings.Repeat(" ", resourcelist.MaxDecoding), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free := resourcelist.Occupy(tc.occupied)
				var done atomic.Bool
				go func() {
					if _, err := resourcelist.Parse(t.Context(), []byte(tc.list)); err != nil {
						t.Error(err)
					}
					done.Store(true)
				}()
				synctest.Wait()
				if done.Load() == tc.waits {
					t.Errorf("it waits: %t, want %t: %s", !done.Load(), tc.waits, tc.reason)
				}
				free()
				synctest.Wait()
				if !done.Load() {
					t.Error("it waits for ever")
				}
			})
		})
	}
}

func TestACallerWhoLeavesWaitsForNoTurn(t *testing.T) {
	defer resourcelist.Occupy(resourcelist.MaxDecoding)()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := resourcelist.Parse(ctx, []byte(asJSON)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who left: %v, want that", err)
	}
}
