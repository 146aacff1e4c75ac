// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"context"
	"errors"
	"runtime"
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
		reason       string
		large, small int64 // memory that is taken
		list         string
		waits        bool
	}{
		"free":      {"nothing to wait for", 0, 0, large, false},
		"as blocks": {"no full decode, no turn", resourcelist.MaxDecoding, resourcelist.MaxSmallDecoding, asBlocks, false},
		"few results": {
			"nor for a few results", resourcelist.MaxDecoding, resourcelist.MaxSmallDecoding,
			asBlocks + results(10), false,
		},
		"results":      {"results are decoded too", 0, resourcelist.MaxSmallDecoding, asBlocks + results(1000), true},
		"many results": {"as large as a list", resourcelist.MaxDecoding, 0, asBlocks + results(1<<15), true},
		"small":        {"small lists do not queue behind large ones", resourcelist.MaxDecoding, 0, asJSON, false},
		"many small":   {"but behind each other", 0, resourcelist.MaxSmallDecoding, asJSON, true},
		"large":        {"large ones do not add up", resourcelist.MaxDecoding - 1<<20, 0, large, true},
		"beside":       {"large lists do not queue behind small ones", 0, resourcelist.MaxSmallDecoding, large, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := resourcelist.Occupy(tc.large, tc.small)
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
				release()
				synctest.Wait()
				if !done.Load() {
					t.Error("it waits for ever")
				}
			})
		})
	}
}

func results(n int) string { return "results:\n" + strings.Repeat("- message: m\n", n) }

// TestACostlyDecodeRunsAlone has one that costs more than all turns together.
func TestACostlyDecodeRunsAlone(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // so that there are processors for others
	synctest.Test(t, func(t *testing.T) {
		acquire := resourcelist.Turns()
		release, err := acquire(t.Context(), 10*resourcelist.MaxDecoding)
		if err != nil {
			t.Fatal(err)
		}
		var second atomic.Bool
		go func() {
			if release, err := acquire(t.Context(), resourcelist.MaxDecoding/2); err == nil {
				second.Store(true)
				release()
			}
		}()
		synctest.Wait()
		if second.Load() {
			t.Error("another large decode runs beside it")
		}
		release()
		synctest.Wait()
		if !second.Load() {
			t.Error("its turn does not end")
		}
	})
}

// TestLargeDecodesLeaveAProcessor has more of them than there are processors.
func TestLargeDecodesLeaveAProcessor(t *testing.T) {
	const each = resourcelist.MaxDecoding / 32 // memory for all of them
	for _, processors := range []int{1, 2, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		acquire := resourcelist.Turns()
		synctest.Test(t, func(t *testing.T) {
			var running atomic.Int64
			ctx, leave := context.WithCancel(t.Context())
			for range 8 {
				go func() {
					release, err := acquire(ctx, each)
					if err != nil {
						return
					}
					running.Add(1)
					<-ctx.Done()
					release()
				}()
			}
			synctest.Wait()
			if got, want := running.Load(), int64(max(1, processors-1)); got != want {
				t.Errorf("%d large decodes run on %d processors, want %d", got, processors, want)
			}
			if release, err := acquire(ctx, 1); err != nil {
				t.Error(err)
			} else {
				release()
			}
			leave()
			synctest.Wait()
			if release, err := acquire(t.Context(), resourcelist.MaxDecoding); err != nil {
				t.Errorf("after all have left: %v", err)
			} else {
				release()
			}
		})
	}
}

// TestLargeScansLeaveAProcessor has more of them than there are processors.
func TestLargeScansLeaveAProcessor(t *testing.T) {
	const large = 1 << 20
	for _, processors := range []int{1, 2, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		scan := resourcelist.Scans()
		synctest.Test(t, func(t *testing.T) {
			var running atomic.Int64
			ctx, leave := context.WithCancel(t.Context())
			for range 8 {
				go func() {
					if release, err := scan(ctx, large); err == nil {
						running.Add(1)
						<-ctx.Done()
						release()
					}
				}()
			}
			synctest.Wait()
			if got, want := running.Load(), int64(max(1, processors-1)); got != want {
				t.Errorf("%d large lists are scanned on %d processors, want %d", got, processors, want)
			}
			if _, err := scan(ctx, 1000); err != nil {
				t.Errorf("a small list: %v", err)
			}
			leave()
			synctest.Wait()
			if _, err := scan(t.Context(), large); err != nil {
				t.Errorf("after all have left: %v", err)
			}
		})
	}
}

// TestLargeListsAreScannedInTurn has a large list and a small one come while others are scanned.
func TestLargeListsAreScannedInTurn(t *testing.T) {
	defer resourcelist.OccupyScans()()
	if _, err := resourcelist.Parse(t.Context(), []byte(asBlocks)); err != nil {
		t.Errorf("a small list: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	comments := asBlocks + strings.Repeat("#\n", 1<<20)
	if _, err := resourcelist.Parse(ctx, []byte(comments)); !errors.Is(err, context.Canceled) {
		t.Errorf("a large list whose caller left: %v, want that", err)
	}
}

func TestACallerThatLeavesWaitsForNoTurn(t *testing.T) {
	defer resourcelist.Occupy(resourcelist.MaxDecoding, resourcelist.MaxSmallDecoding)()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := resourcelist.Parse(ctx, []byte(asJSON)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left: %v, want that", err)
	}
}
