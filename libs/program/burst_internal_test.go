// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhenMemoryIsReturned(t *testing.T) {
	const mib = 1 << 20
	tests := map[string]struct {
		reason  string
		looks   []usage
		returns int      // looks after which memory is returned
		left    []uint64 // what is mapped after each of these
	}{
		"idle": {"nothing to return", []usage{{20 * mib, 1}, {20 * mib, 1}, {20 * mib, 1}}, 0, nil},
		"burst": {
			"it is over when the runtime collects no more", []usage{{200 * mib, 5}, {200 * mib, 5}}, 1, []uint64{20 * mib},
		},
		"load":  {"what is free will be used again", []usage{{200 * mib, 5}, {200 * mib, 9}, {200 * mib, 10}}, 0, nil},
		"small": {"not worth a collection", []usage{{51 * mib, 0}, {51 * mib, 0}, {51 * mib, 0}}, 0, nil},
		"needed": {
			"what is in use cannot be returned, and trying again costs a collection: it is done every other look",
			[]usage{
				{200 * mib, 5}, {200 * mib, 5}, {199 * mib, 5}, {210 * mib, 5}, {210 * mib, 5}, {210 * mib, 6}, {210 * mib, 7},
			},
			2,
			[]uint64{198 * mib, 198 * mib},
		},
		"held": {
			"what was in use then may be garbage now, although no more is mapped",
			[]usage{{200 * mib, 5}, {200 * mib, 5}, {150 * mib, 5}, {150 * mib, 5}, {20 * mib, 5}, {20 * mib, 5}, {20 * mib, 5}},
			2,
			[]uint64{150 * mib, 20 * mib},
		},
		"again": {
			"each burst counts", []usage{{200 * mib, 0}, {20 * mib, 0}, {60 * mib, 0}}, 2, []uint64{20 * mib, 20 * mib},
		},
		"less": {
			"what the runtime returned by itself counts as not needed",
			[]usage{{100 * mib, 0}, {20 * mib, 0}, {60 * mib, 0}},
			2,
			[]uint64{90 * mib, 20 * mib},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, returns := newBurst(usage{mapped: 20 * mib}), 0
			for _, now := range tc.looks {
				if !b.over(now) {
					continue
				}
				if returns++; returns <= len(tc.left) {
					b.returned(usage{mapped: tc.left[returns-1], collections: now.collections})
				}
			}
			if returns != tc.returns {
				t.Errorf("memory is returned %d times, want %d: %s", returns, tc.returns, tc.reason)
			}
		})
	}
}

// TestMemoryIsReturnedAfterABurst has this process use memory and need it no more.
func TestMemoryIsReturnedAfterABurst(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // none of the runtime's own collections
	debug.FreeOSMemory()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- returnMemory(ctx) }()
		synctest.Wait()
		before := readUsage().mapped
		use(2 * worthReturning)
		if grown := readUsage().mapped; grown < before+worthReturning {
			t.Fatalf("%d bytes are mapped after a burst, and %d before", grown, before)
		}
		<-time.After(lookEvery + time.Second)
		synctest.Wait()
		if after := readUsage().mapped; after > before+worthReturning/2 {
			t.Errorf("%d bytes are mapped after a burst, and %d before", after, before)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// use has the process use memory, and forgets it.
//
//go:noinline
func use(size int) {
	memory := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		memory[i] = 1
	}
}
